// Counts, for each answer, pastes, how often the page was left during writing, and manual changes.
// The text itself is not read.
"use strict";
(() => {
  const form = document.querySelector(".asking form");
  const hidden = (name) => form.elements.namedItem(name).value;
  // Counts are cumulative since the page was loaded, so that one sent twice counts once.
  const load = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
  const counts = new Map();
  let last = "", timer = 0, isChanged = false;

  function count(name, what) {
    if (!name || !name.includes(":")) return;
    if (!counts.has(name)) counts.set(name, { pastes: 0, leaves: 0, keys: 0 });
    counts.get(name)[what] += 1;
    isChanged = true;
    clearTimeout(timer);
    timer = setTimeout(send, 2000);
  }

  function send() {
    clearTimeout(timer);
    if (!isChanged) return;
    isChanged = false;
    const body = new URLSearchParams({ csrf: hidden("csrf"), unit: hidden("unit"), load });
    for (const [name, own] of counts) body.set(`n-${name}`, `${own.pastes} ${own.leaves} ${own.keys}`);
    fetch(form.dataset.signs, { method: "POST", body, credentials: "same-origin", redirect: "manual", keepalive: true })
      .then((reply) => { if (reply.status >= 500) isChanged = true; })
      .catch(() => { isChanged = true; });
  }

  form.addEventListener("focusin", (event) => { if (event.target.name?.includes(":")) last = event.target.name; });
  form.addEventListener("input", (event) => {
    if (event.target.tagName !== "TEXTAREA") return;
    const isPaste = event.inputType === "insertFromPaste" || event.inputType === "insertFromDrop";
    count(event.target.name, isPaste ? "pastes" : "keys");
  });
  // A choice is not writing; it shows that this page could count.
  form.addEventListener("change", (event) => { if (event.target.type === "radio") count(event.target.name, "keys"); });
  addEventListener("blur", () => count(last, "leaves"));
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") send(); });
  addEventListener("pagehide", send);
  form.addEventListener("submit", send);
})();
