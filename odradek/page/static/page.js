// The page's script: live parts, questions before changes, and small helps. The page works without it, but stands still then.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const view = document.body.dataset.view;

  // ------------------------------------------------------------------------------------------------ live parts
  // An element is changed in place, so focus, selection, scroll position, open details and what is being typed stay. A row with
  // data-key is the same row wherever it stands. The script's own elements have data-own. A form's property "id" is its field
  // of that name, if it has one.
  const keyOf = (node) => (node.nodeType === 1 ? node.dataset.key || node.getAttribute("id") : "");

  const morph = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if ("own" in old.dataset) return;
    const isField = /^(INPUT|TEXTAREA|SELECT)$/.test(old.nodeName);
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !(name === "open" && old.nodeName === "DETAILS")) old.setAttribute(name, value);
    }
    if (isField && (old === document.activeElement || old.nodeName !== "SELECT" && old.value !== old.defaultValue)) return;
    morphChildren(old, fresh);
  };

  const morphChildren = (old, fresh) => {
    const wanted = new Set([...fresh.children].map(keyOf).filter(Boolean));
    const kept = new Map();
    for (const child of [...old.children]) {
      const key = keyOf(child);
      if (!key) continue;
      if (wanted.has(key)) kept.set(key, child);
      else child.remove();
    }
    const isTable = old.nodeName === "TBODY" && old.children.length;
    let at = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const key = keyOf(child);
      let match = key ? kept.get(key) : at && !keyOf(at) && at.nodeType === child.nodeType ? at : null;
      if (match && match.nodeName !== child.nodeName) match = null;
      if (!match) {
        old.insertBefore(child, at);
        if (isTable && key) child.classList.add("new");
      } else {
        kept.delete(key);
        if (match === at) at = at.nextSibling;
        else old.insertBefore(match, at);
        morph(match, child);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  // Parts that stand still, with what has come for them since.
  const paused = new Map();

  const swap = (id, html) => {
    if (paused.has(id)) {
      paused.set(id, html);
      return;
    }
    const part = byId(id);
    if (!part) {
      // The page had no facts when it was loaded.
      if (document.querySelector("[data-reload]")) location.reload();
      return;
    }
    const follow = part.querySelector("[data-follow]");
    const isAtEnd = follow && follow.scrollHeight - follow.scrollTop - follow.clientHeight < 40;
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    label(fresh.content);
    morphChildren(part, fresh.content);
    filter();
    const after = part.querySelector("[data-follow]");
    if (after && (isAtEnd || !follow)) after.scrollTop = after.scrollHeight;
  };

  // Narrow screens show a row as a card, and each cell with the name of its column.
  const label = (part) => {
    for (const table of part.querySelectorAll("table")) {
      const names = [...(table.tHead?.rows[0].cells || [])].map((cell) => (cell.querySelector(".off, input") ? "" : cell.textContent));
      for (const row of names.length ? table.tBodies[0].rows : []) {
        for (const cell of row.cells) if (names[cell.cellIndex]) cell.dataset.label = names[cell.cellIndex];
      }
    }
  };
  label(document);

  let source = null;
  let again = 0;
  const tell = (text, isLost) => {
    const live = byId("live");
    live.hidden = false;
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("lost", isLost);
  };
  const connect = () => {
    clearTimeout(again);
    if (source || document.hidden || !view || !document.querySelector("[data-live], [data-reload]")) return;
    source = new EventSource(`/page/live?view=${view}&${location.search.slice(1)}`);
    source.onopen = () => tell("live", false);
    source.onerror = () => {
      tell("no connection, trying again", true);
      if (source && source.readyState === EventSource.CLOSED) {
        leave();
        again = setTimeout(connect, 1500);
      }
    };
    source.addEventListener("part", (sent) => {
      const { id, html } = JSON.parse(sent.data);
      swap(id, html);
    });
    source.addEventListener("problem", (sent) => {
      const problem = byId("problem");
      problem.textContent = JSON.parse(sent.data).text;
      problem.hidden = !problem.textContent;
    });
    source.addEventListener("login", () => location.reload());
  };
  const leave = () => {
    if (source) source.close();
    source = null;
  };
  // A browser has six connections to a server, so a hidden page lets its own go.
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : connect()));
  addEventListener("pagehide", leave);
  addEventListener("pageshow", connect);

  // ------------------------------------------------------------------------------------------------ changes
  let quiet = 0;
  const say = (text, hasFailed) => {
    const said = byId("said");
    said.textContent = text;
    said.classList.toggle("failed", Boolean(hasFailed));
    clearTimeout(quiet);
    quiet = setTimeout(() => (said.textContent = ""), hasFailed ? 20000 : 6000);
  };
  // What a change has done is said on the page that it leads to. A browser may keep nothing for the page: then it is not said.
  const SAID = "odradek-said";
  const kept = (then) => {
    try {
      return then(sessionStorage);
    } catch {
      return null;
    }
  };
  const later = kept((storage) => storage.getItem(SAID));
  if (later) {
    kept((storage) => storage.removeItem(SAID));
    say(later);
  }
  const ask = (title, text, isGrave) =>
    new Promise((resolve) => {
      const dialog = byId("ask");
      byId("ask-title").textContent = title;
      byId("ask-text").textContent = text;
      const go = byId("ask-go");
      go.textContent = title;
      go.className = isGrave ? "grave" : "go";
      dialog.returnValue = "no";
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
      dialog.showModal();
      if (!isGrave) go.focus();
    });
  document.addEventListener("submit", async (submitted) => {
    const form = submitted.target;
    if (!("ask" in form.dataset)) return;
    submitted.preventDefault();
    const button = submitted.submitter;
    const fields = new FormData(form, button);
    const pattern = button.dataset.ask || form.dataset.ask;
    const question = pattern.replace(/{(\w+)}/g, (_, name) => fields.getAll(name).join(", ")).replace(/\s+\?/, "?");
    if (!(await ask(button.textContent.trim(), question, button.matches(".grave")))) return;
    fields.set("confirmed", "yes");
    button.disabled = true;
    try {
      const headers = { Accept: "application/json" };
      const place = button.hasAttribute("formaction") ? button.formAction : form.action;
      const answer = await fetch(place, { method: "POST", headers, body: new URLSearchParams(fields) });
      const told = await answer.json();
      if (told.location) {
        kept((storage) => storage.setItem(SAID, told.text));
        location.assign(told.location);
      } else {
        say(told.text || told.error, !answer.ok);
        if (answer.ok && "reset" in form.dataset) form.reset();
      }
    } catch {
      say("The broker has not answered.", true);
    }
    button.disabled = false;
  });

  // ------------------------------------------------------------------------------------------------ small helps
  // <input data-filter="ID"> hides the rows of a part that lack its text.
  const filter = () => {
    for (const input of document.querySelectorAll("[data-filter]")) {
      const text = input.value.toLowerCase();
      for (const row of document.querySelectorAll(`#${input.dataset.filter} tbody tr`)) {
        row.hidden = !row.textContent.toLowerCase().includes(text);
      }
    }
  };
  document.addEventListener("input", (changed) => {
    if ("filter" in changed.target.dataset) filter();
    // <input data-all="NAME"> checks all boxes of that name.
    if ("all" in changed.target.dataset) {
      for (const box of changed.target.form.querySelectorAll(`input[name="${changed.target.dataset.all}"]`)) {
        box.checked = changed.target.checked;
      }
    }
  });
  // <details data-load="URL"> gets the record of another page when it is opened; a link with data-in there replaces it.
  const fill = async (place, url) => {
    const answer = await fetch(url);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html");
    const record = found.getElementById("record") || found.getElementById("problem");
    record.removeAttribute("id");
    place.replaceChildren(record);
  };
  document.addEventListener(
    "toggle",
    (toggled) => {
      const details = toggled.target;
      if (details.open && details.dataset.load) fill(details.querySelector("[data-own]"), details.dataset.load);
    },
    true,
  );
  document.addEventListener("click", async (clicked) => {
    const link = clicked.target.closest("[data-own] a[data-in]");
    if (link) {
      clicked.preventDefault();
      fill(link.closest("[data-own]"), link.href);
    }
    // <button data-pause="ID"> keeps a part as it is.
    const pause = clicked.target.closest("[data-pause]");
    if (pause) {
      const id = pause.dataset.pause;
      const isPaused = !paused.has(id);
      pause.setAttribute("aria-pressed", isPaused);
      pause.textContent = isPaused ? "Go on" : "Pause";
      const html = paused.get(id);
      if (isPaused) paused.set(id, "");
      else paused.delete(id);
      if (html) swap(id, html);
    }
    // <button data-copy="ID"> copies an element's text.
    const button = clicked.target.closest("[data-copy]");
    if (!button) return;
    const from = byId(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
    } catch {
      // Without TLS, and not on this machine, there is no clipboard but the old one.
      getSelection().selectAllChildren(from);
      document.execCommand("copy");
    }
    say("Copied.");
  });
  for (const follow of document.querySelectorAll("[data-follow]")) follow.scrollTop = follow.scrollHeight;
})();
