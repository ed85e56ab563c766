// The desk: file drops on forms, saving while typing, and a report that updates while it is read.
// Drafts can also be measured, read and compared without this script.
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
      input.dispatchEvent(new Event("change"));
    }
  });
  // If a file is all that the form needs, submit it at once.
  if (form.dataset.starts) input.addEventListener("change", () => { if (input.files.length) form.requestSubmit(); });
}

const buttons = place => [...place.querySelectorAll(".decide button")];
const area = document.querySelector("#draft"), draft = area && held(area);
const saving = document.querySelector("[data-save]");
if (saving) keep(area, draft, saving);
const panel = document.querySelector(".check");
if (panel) look(area, draft, panel);

// The text of the draft, of which the area shows all, or one part. Places are those of the whole text.
function held(area) {
  const draft = {
    before: "", after: "",
    get text() { return this.before + area.value + this.after; },
    get first() { return this.before.length; },
    get last() { return this.before.length + area.value.length; },
    // What is typed at the end of a chapter must not run into the next heading: the space between is kept apart.
    show(first, last) {
      const text = this.text, part = text.slice(first, last).trimEnd();
      [this.before, area.value, this.after] = [text.slice(0, first), part, text.slice(first + part.length)];
    },
  };
  area.form.addEventListener("formdata", event => event.formData.set("text", draft.text));
  return draft;
}

function sent(area, text) {
  const body = new FormData();
  body.append("csrf", area.form.elements.csrf.value);
  body.append("text", text);
  body.append("typed", Date.now());
  return body;
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

// Save to the desk at every keystroke; while it does not answer, save in the browser.
function keep(area, draft, status) {
  const address = status.dataset.save, here = `fabula ${address}`;
  let kept = draft.text, isBusy = false, isOver = false;
  const store = text => {
    const held = JSON.stringify({text, at: Date.now()});
    try { text === null ? localStorage.removeItem(here) : localStorage.setItem(here, held); } catch { /* full, or forbidden */ }
  };
  area.addEventListener("input", save);
  addEventListener("pagehide", () => {
    if (isOver || draft.text === kept) return;
    store(draft.text);
    navigator.sendBeacon(address, sent(area, draft.text));
  });
  area.form.addEventListener("submit", () => { isOver = true; store(null); });
  let left = null;
  try { left = JSON.parse(localStorage.getItem(here)); } catch { /* forbidden */ }
  // Unsent text is newer than the desk's, unless the draft was edited elsewhere since.
  if (left && left.at > Number(status.dataset.typed) && left.text !== draft.text) { area.value = left.text; save(); }

  async function save() {
    if (isBusy || isOver || draft.text === kept) return;
    isBusy = true;
    const text = draft.text;
    try {
      const answer = await fetch(address, {method: "POST", body: sent(area, text)});
      if (!answer.ok) throw new Error(answer.statusText);
      status.textContent = `Saved on the desk, ${(await answer.json()).saved}`;
      status.removeAttribute("role");
      kept = text;
      if (draft.text === text) store(null);
      // A long text takes a while to be sent.
      if (text.length > area.value.length) await pause(1000);
    } catch {
      if (!isOver) {
        // The current text: leaving the page aborts its request, after the newest text was stored.
        store(draft.text);
        status.setAttribute("role", "alert");
        status.textContent = "The desk is not responding. Your words are kept in this browser until it does.";
        await pause(3000);
      }
    }
    isBusy = false;
    save();
  }
}

// After a typing pause, check the text: underline the findings, and list them next to it. A long text is edited by
// chapter, or it would be slow to type in.
function look(area, draft, panel) {
  const under = document.querySelector(".under"), list = document.querySelector(".chapters"), maxChars = 200000;
  let timer, text = area.value, seen = text, marks = [], isBusy = false, parts = JSON.parse(area.dataset.parts);
  area.addEventListener("input", () => { follow(); draw(); clearTimeout(timer); timer = setTimeout(check, 1200); });
  area.addEventListener("scroll", () => { under.scrollTop = area.scrollTop; });
  list.addEventListener("click", event => {
    const pressed = event.target.closest("button");
    if (pressed) go([...list.children].indexOf(pressed));
  });
  // The arrow keys move in the list, so that one press of Tab leaves it.
  list.addEventListener("keydown", event => {
    const next = {ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling"}[event.key];
    if (!next) return;
    event.preventDefault();
    document.activeElement[next]?.focus();
  });
  panel.addEventListener("click", async event => {
    const decided = event.target.closest(".decide button");
    if (decided) {
      // The finding's place is one in the text that was checked.
      const body = sent(area, seen), at = buttons(panel).indexOf(decided);
      body.append(decided.name, decided.value);
      await fetch(area.dataset.check.replace(/check$/, "dismiss"), {method: "POST", body});
      await check();
      (buttons(panel)[at] || area).focus();
      return;
    }
    const to = event.target.closest("button.to");
    if (!to) return;
    area.focus();
    area.setSelectionRange(Number(to.dataset.start) - draft.first, Number(to.dataset.end) - draft.first);
    const mark = under.querySelector(`[data-at="${to.dataset.start}"]`);
    if (mark) area.scrollTop = mark.offsetTop - area.clientHeight / 3;
  });
  const asked = Number(location.hash.match(/^#part-(\d+)$/)?.[1] || 1);
  // Text that the desk did not have yet has other parts.
  if (parts.length > 1 && parts.at(-1)[2] === draft.text.length) go(Math.min(asked, parts.length) - 1); else check();

  // Show a part of the text.
  function go(k) {
    const [, first, last] = parts[k];
    draft.show(first, last);
    history.replaceState(null, "", `#part-${k + 1}`);
    text = area.value;
    area.setSelectionRange(0, 0);
    area.scrollTop = 0;
    draw();
    name();
    list.scrollTop = list.children[k].offsetTop - list.clientHeight / 2;
    clearTimeout(timer);
    check();
  }

  // List the parts, each with the number of its findings.
  function name() {
    const focused = [...list.children].indexOf(document.activeElement);
    const current = parts.findIndex(([, , last]) => draft.first < last);
    list.hidden = parts.length < 2;
    list.replaceChildren(...parts.map(([label, first, last], k) => {
      const one = document.createElement("button"), count = document.createElement("small");
      const n = marks.filter(([a]) => a >= first && a < last).length;
      one.type = "button";
      one.tabIndex = k === current ? 0 : -1;
      if (k === current) one.setAttribute("aria-current", "true");
      count.textContent = n ? ` ${n}` : "";
      if (n) one.setAttribute("aria-label", `${label}, ${n} to look at`);
      one.append(label, count);
      return one;
    }));
    if (focused >= 0) list.children[focused]?.focus();
  }

  async function check() {
    if (isBusy) { timer = setTimeout(check, 400); return; }
    isBusy = true;
    const {before, after, text: whole} = draft, shown = area.value, body = sent(area, whole);
    body.append("first", draft.first);
    body.append("last", draft.last);
    try {
      const answer = await fetch(area.dataset.check, {method: "POST", body});
      const isThere = draft.before === before && draft.after === after;
      if (answer.ok && (isThere || draft.text === whole)) {
        const found = await answer.json();
        panel.hidden = false;
        panel.innerHTML = found.html;
        [text, seen, marks, parts] = [isThere ? shown : area.value, whole, found.marks, found.parts];
        follow();
        draw();
        name();
      }
    } catch { /* the save status says that the desk does not answer */ }
    isBusy = false;
  }

  // Marks move with their words during typing; a mark that was edited is removed.
  function follow() {
    const now = area.value, least = Math.min(now.length, text.length);
    let start = 0, end = 0;
    while (start < least && now[start] === text[start]) start++;
    while (end < least - start && now[now.length - 1 - end] === text[text.length - 1 - end]) end++;
    const from = draft.first, first = from + start, last = from + text.length - end, moved = now.length - text.length;
    const place = x => x <= from ? x : x >= last ? x + moved : Math.min(x, first);
    marks = marks.filter(([a, b]) => b <= first || a >= last)
      .map(([a, b]) => a >= last ? [a + moved, b + moved] : [a, b]);
    parts = parts.map(([label, a, b]) => [label, place(a), place(b)]);
    text = now;
  }

  function draw() {
    const pieces = [], from = draft.first;
    let at = 0;
    if (text.length < maxChars) for (const [first, last] of marks) {
      const a = Math.max(first - from, at), b = Math.min(last - from, text.length);
      if (b <= a) continue;
      pieces.push(text.slice(at, a));
      const mark = document.createElement("mark");
      mark.dataset.at = first;
      mark.textContent = text.slice(a, b);
      pieces.push(mark);
      at = b;
    }
    under.replaceChildren(...pieces, text.length < maxChars ? text.slice(at) + "\n" : "");
    under.scrollTop = area.scrollTop;
  }
}

// What is decided about a finding changes the page in place.
document.addEventListener("submit", async event => {
  if (event.target.id !== "own" || !event.submitter) return;
  event.preventDefault();
  const pressed = event.submitter, at = buttons(document).indexOf(pressed);
  await fetch(event.target.action, {method: "POST", body: new FormData(event.target, pressed)});
  await renew();
  const same = buttons(document).find(one => one.name === pressed.name && one.value === pressed.value);
  (same || buttons(document)[at])?.focus({preventScroll: true});
});

const bar = document.querySelector("nav.bar");
if (bar && bar.dataset.over === "no") watch(bar);

async function watch(bar) {
  let edition = Number(bar.dataset.edition), asked = Boolean(bar.querySelector(".question"));
  for (;;) {
    await new Promise(resolve => setTimeout(resolve, 400));
    let state;
    try {
      const answer = await fetch(bar.dataset.state);
      if (!answer.ok) return;  // removed in the meantime
      state = await answer.json();
    } catch {
      bar.querySelector(".progress").textContent = "The desk is not responding; is it still running?";
      continue;
    }
    const word = bar.querySelector(".progress span"), progress = bar.querySelector("progress");
    if (word) word.textContent = state.stage;
    if (progress && state.total) { progress.max = state.total; progress.value = state.done; }
    if (state.edition !== edition || state.over || Boolean(state.question) !== asked) {
      edition = state.edition;
      asked = Boolean(state.question);
      try { await renew(); } catch { edition = -1; continue; }
      // The page may be newer than the state that triggered the update: leave a finished one alone.
      if (bar.dataset.over === "yes") return;
    }
  }
}

// Update the page in place: what is open stays open, and the page does not scroll.
async function renew() {
  const page = new DOMParser().parseFromString(await (await fetch(location.pathname)).text(), "text/html");
  const open = new Set([...document.querySelectorAll("details[open]")].map(one => one.id));
  document.querySelector("main").replaceWith(page.querySelector("main"));
  for (const one of document.querySelectorAll("details")) if (one.id && open.has(one.id)) one.open = true;
  const style = page.querySelector("head style");
  if (style) document.querySelector("head style").replaceWith(style);
  const fresh = page.querySelector("nav.bar");
  const own = document.querySelector(".own");
  if (own && !own.contains(document.activeElement)) own.replaceWith(page.querySelector(".own"));
  bar.dataset.over = fresh.dataset.over;
  bar.replaceChildren(...fresh.childNodes);
}
