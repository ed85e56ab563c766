// Saves every answer as it is given, and shows its follow-up questions. Without this script, the
// buttons submit the same form.
"use strict";
(() => {
  const form = document.querySelector(".asking form");
  const status = document.getElementById("status");
  const words = JSON.parse(form.dataset.labels);
  const label = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const waiting = new Map(), ended = new Set();
  let sending = null, timer = 0, failures = 0, leaving = false;
  document.documentElement.classList.add("alive");
  // Reloading a page that was the response to a form must not submit that form again.
  history.replaceState(null, "", location.href);

  const say = (text, wrong = false) => {
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("wrong", wrong);
  };
  const field = (name) => form.elements.namedItem(name);

  function note(element, wait) {
    if (!element.name || !element.name.includes(":")) return;
    waiting.set(element.name, element.value);
    say(label("saving"));
    clearTimeout(timer);
    timer = setTimeout(send, wait);
  }

  // One request at a time; other calls wait for the one in progress.
  function send() {
    clearTimeout(timer);
    if (!sending && waiting.size) {
      sending = attempt().finally(() => { sending = null; });
    }
    return sending;
  }

  async function attempt() {
    const batch = new Map(waiting);
    waiting.clear();
    const body = new URLSearchParams([...batch]);
    body.set("ended", [...ended].join(" "));
    ended.clear();
    for (const own of form.querySelectorAll("input[type=hidden]")) body.set(own.name, own.value);
    // A hidden page may be closed before the response arrives; the request must outlive it.
    const keepalive = document.visibilityState === "hidden";
    try {
      const reply = await fetch(form.dataset.save, {
        method: "POST", body, credentials: "same-origin", redirect: "manual", keepalive,
      });
      if (reply.type === "opaqueredirect") { leaving = true; location.reload(); return; }
      if (!reply.ok) throw new Error(String(reply.status));
      take(await reply.json(), batch);
      failures = 0;
      if (waiting.size) timer = setTimeout(send, 0);
    } catch (error) {
      failures += 1;
      // Input typed since then is newer than the failed save.
      for (const [name, value] of batch) if (!waiting.has(name)) waiting.set(name, value);
      if (error.message === "403") { say(label("not_saved_closed"), true); return; }
      say(label("not_saved_retrying"), true);
      clearTimeout(timer);
      timer = setTimeout(send, Math.min(15000, 1000 * 2 ** failures));
    }
  }

  // Resolves to true once all pending answers are saved, to false if saving failed.
  async function flush() {
    while (waiting.size || sending) {
      const before = failures;
      await send();
      if (failures > before) return false;
    }
    return true;
  }

  function take(content, batch) {
    field("revision").value = content.revision;
    for (const step of content.steps) {
      const entry = document.querySelector(`[data-step="${step.name}"]`);
      if (!entry) continue;
      entry.querySelector("small").textContent = label("done_of", step);
      entry.classList.toggle("done", step.of > 0 && step.done === step.of);
    }
    if (content.html !== undefined) replace(content);
    for (const name of batch.keys()) mark(name, content.problems[name] || content.short[name] || "");
    compareRanks();
    const notice = document.getElementById("wrong");
    if (notice && !form.querySelector(".question.wrong")) notice.remove();
    const wrong = Object.values(content.problems)[0];
    if (wrong) say(wrong, true);
    else if (!waiting.size) {
      const clock = { hour: "2-digit", minute: "2-digit" };
      say(label("saved_at", { time: new Date().toLocaleTimeString([], clock) }));
    }
  }

  // Different questions apply now. Keep the text being typed and the scroll position.
  function replace(content) {
    const active = document.activeElement;
    const id = active && active.id, name = active && active.name, value = active && active.value;
    const unfolded = [...form.querySelectorAll("details[open]")].map((e) => e.parentElement.id);
    document.getElementById("questions").innerHTML = content.html;
    document.getElementById("turn").innerHTML = content.turn;
    const names = [...form.querySelectorAll("fieldset.question")].map((e) => e.id.slice(2));
    field("shown").value = names.join(" ");
    for (const [key, text] of waiting) {
      const element = field(key);
      if (element) element.value = text;
    }
    for (const box of unfolded) {
      const details = document.getElementById(box)?.querySelector("details");
      if (details) details.open = true;
    }
    const again = id ? document.getElementById(id)
      : name && [...form.querySelectorAll("input")].find((e) => e.name === name && e.value === value);
    if (again) again.focus({ preventScroll: true });
  }

  function mark(name, text) {
    const question = name.replace(/\.why$/, "");
    const box = document.getElementById(`q-${question}`);
    if (!box) return;
    box.classList.toggle("wrong", Boolean(text));
    let line = box.querySelector(".problem");
    if (!text) {
      if (line) line.remove();
      box.removeAttribute("aria-describedby");
      return;
    }
    if (!line) {
      line = document.createElement("p");
      line.className = "problem";
      line.id = `p-${question}`;
      box.append(line);
      box.setAttribute("aria-describedby", line.id);
    }
    if (line.textContent !== text) line.textContent = text;
  }

  // Show a message while two stories have the same rank.
  function compareRanks() {
    const taken = new Map();
    for (const input of form.querySelectorAll(".ranks input:checked")) {
      const story = input.name.split(":")[0], other = taken.get(input.value);
      mark(input.name, other === undefined ? ""
        : label("same_place", { story, other }));
      if (other === undefined) taken.set(input.value, story);
    }
  }

  form.addEventListener("change", (event) => {
    // A reason is reported as too short only after the field has lost focus.
    if (event.target.tagName === "TEXTAREA") ended.add(event.target.name);
    note(event.target, 0);
  });
  form.addEventListener("input", (event) => {
    if (event.target.tagName === "TEXTAREA") note(event.target, 700);
  });

  // Leave the page only once everything is saved: without a connection it stays open.
  form.addEventListener("submit", async (event) => {
    if (leaving) { event.preventDefault(); return; }
    leaving = true;
    if (!waiting.size && !sending) {
      // If loading is stopped, the button can be pressed again.
      setTimeout(() => { leaving = false; }, 3000);
      return;
    }
    event.preventDefault();
    const name = event.submitter?.value;
    const isSaved = await flush();
    leaving = false;
    if (!isSaved) return;
    const button = [...form.querySelectorAll("button")].find((e) => e.value === name);
    form.requestSubmit(button);
  });
  // All answers are saved by then. Sending them again could undo changes from another tab.
  form.addEventListener("formdata", (event) => {
    for (const name of [...event.formData.keys()]) {
      if (name.includes(":")) event.formData.delete(name);
    }
  });
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[href]");
    const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || link.getAttribute("href").startsWith("#") || !isPlain) return;
    if (!waiting.size && !sending) return;
    event.preventDefault();
    if (await flush()) location.assign(link.href);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") send();
  });
  addEventListener("beforeunload", (event) => {
    if (!leaving && (waiting.size || sending)) { send(); event.preventDefault(); }
  });
  addEventListener("online", () => { failures = 0; send(); });
  // A page from the back/forward cache may hold old answers: reload it.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // After a form is submitted, restore the scroll position of the text.
  const text = document.getElementById("text");
  if (text) {
    const key = `${location.pathname} ${field("unit")?.value}`;
    const [place, isAsking] = JSON.parse(sessionStorage.getItem(key) || "[0, false]");
    text.scrollTop = place;
    if (isAsking && !location.hash) text.parentElement.scrollLeft = text.offsetWidth;
    addEventListener("pagehide", () => {
      const asks = text.parentElement.scrollLeft > text.offsetWidth / 2;
      sessionStorage.setItem(key, JSON.stringify([text.scrollTop, asks]));
    });
  }
  const here = document.querySelector(".bar [aria-current]");
  if (here) here.parentElement.parentElement.scrollLeft = here.offsetLeft - 20;

  const wrong = form.querySelector(".question.wrong :is(input, textarea)");
  if (wrong) {
    wrong.closest(".question").scrollIntoView({ block: "center" });
    wrong.focus({ preventScroll: true });
  }
})();
