"""What tests of the reference folder lend."""

from tests.reference.conftest import no_waiting_for_disks as no_waiting_for_disks
