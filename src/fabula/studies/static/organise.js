// Buttons that copy a link, beside the fields that hold the links. Without this script a link is
// copied from its field.
"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Pages without https have no clipboard of that kind.
      document.execCommand("copy");
    }
    const said = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 2000);
  });
}
