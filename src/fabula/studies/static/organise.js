// Buttons that copy a link, next to the link's field. Without this script, links are copied from
// the field.
"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // The clipboard API needs a secure context.
      document.execCommand("copy");
    }
    const said = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = said; }, 2000);
  });
}
