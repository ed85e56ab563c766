"""The desk: a local page where a writer drops a draft, reads its report, revises and compares."""
