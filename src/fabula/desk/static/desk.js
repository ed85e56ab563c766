// The desk: files dropped on a form, and a report that grows while it is read. All works without, too.
"use strict";

for (const form of document.querySelectorAll("form.drop")) {
  const input = form.querySelector("input[type=file]");
  form.addEventListener("dragover", event => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", event => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      input.closest("details")?.setAttribute("open", "");
      input.scrollIntoView({block: "nearest"});
    }
  });
}

const bar = document.querySelector("nav.bar");
if (bar && bar.dataset.over === "no") follow(bar);

async function follow(bar) {
  let edition = Number(bar.dataset.edition), asked = Boolean(bar.querySelector(".question"));
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 400));
    let state;
    try {
      const answer = await fetch(bar.dataset.state);
      if (!answer.ok) return;  // removed meanwhile
      state = await answer.json();
    } catch {
      bar.querySelector(".progress").textContent = "The desk does not answer; is it still running?";
      continue;
    }
    const word = bar.querySelector(".progress span"), progress = bar.querySelector("progress");
    if (word) word.textContent = state.stage;
    if (progress && state.total) { progress.max = state.total; progress.value = state.done; }
    if (state.edition !== edition || state.over || Boolean(state.question) !== asked) {
      edition = state.edition;
      asked = Boolean(state.question);
      try { await renew(); } catch { edition = -1; continue; }
      // The page may be newer than the state that led to it: a finished one is left alone, it is being read.
      if (bar.dataset.over === "yes") return;
    }
  }
}

// The newest of the page, where it is read: what is open stays open, and the page does not move.
async function renew() {
  const page = new DOMParser().parseFromString(await (await fetch(location.pathname)).text(), "text/html");
  const open = new Set([...document.querySelectorAll("details[open]")].map(one => one.id));
  document.querySelector("main").replaceWith(page.querySelector("main"));
  for (const one of document.querySelectorAll("details")) if (one.id && open.has(one.id)) one.open = true;
  const style = page.querySelector("head style");
  if (style) document.querySelector("head style").replaceWith(style);
  const fresh = page.querySelector("nav.bar");
  bar.dataset.over = fresh.dataset.over;
  bar.replaceChildren(...fresh.childNodes);
}
