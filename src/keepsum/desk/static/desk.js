// The live parts of the page: uploads, forms that apply at once, the slider, sets of cells, progress. No framework.
"use strict";
(() => {
  const { base, csrf } = document.body.dataset;
  const $ = (id) => document.getElementById(id);
  const say = (text) => {
    const place = $("said");
    place.replaceChildren();
    if (!text) return;
    const line = document.createElement("p");
    line.className = "trouble";
    line.textContent = text;
    place.append(line);
    place.scrollIntoView({ block: "nearest" });
  };
  document.documentElement.classList.add("script");

  // -- a page that was asked for takes the place of this one, and the focus stays where it was ---------------------
  const TYPED = "main input[type=text][id], main input:not([type])[id], main textarea[id]";
  const written = () => new Map([...document.querySelectorAll(TYPED)].map((node) => [node.id, node.value]));
  let shown = 0;  // how many pages took the place of another
  const show = (text, address, asked) => {  // what was in the fields when it was asked for: typed since then is kept
    shown += 1;
    const since = [...document.querySelectorAll(TYPED)].filter((node) => asked && asked.has(node.id) && asked.get(node.id) !== node.value);
    const next = new DOMParser().parseFromString(text, "text/html");
    const focused = document.activeElement;
    const held = focused && focused.id;
    const typed = focused && focused.matches("input[type=text], textarea") ? [focused.selectionStart, focused.selectionEnd] : null;
    const open = [...document.querySelectorAll("details[open] > summary b")].map((node) => node.textContent);
    const unsent = new Map([...document.querySelectorAll("[data-keep]")].filter((node) => node.value !== node.defaultValue).map((node) => [node.dataset.keep, node]));
    for (const part of [".top", "main", ".foot"]) document.querySelector(part).replaceWith(next.querySelector(part));
    document.title = next.title;
    Object.assign(document.body.dataset, next.body.dataset);
    if (address) history.replaceState(null, "", address);
    for (const node of document.querySelectorAll("details > summary b")) if (open.includes(node.textContent)) node.closest("details").open = true;
    for (const node of document.querySelectorAll("[data-keep]")) {  // what was typed and not sent, or refused, stays
      const old = unsent.get(node.dataset.keep);
      if (old && old.defaultValue === node.defaultValue) node.value = old.value;
    }
    for (const { id, value } of since) {
      const node = $(id);
      if (!node || !node.matches(TYPED)) continue;
      node.value = value;
      const { form } = node;  // no change will be told of what was typed before
      if (form && form.matches("[data-live]")) node.addEventListener("blur", () => { if (document.contains(form) && node.value !== node.defaultValue) apply(form); }, { once: true });
    }
    begin();
    const again = held && $(held);
    if (again) {
      again.focus({ preventScroll: true });
      if (typed && again.setSelectionRange) again.setSelectionRange(...typed);
    }
  };
  const fetched = async (address, options) => {  // what was answered, as a text, and where from; null if nothing was
    try {
      const answer = await fetch(address, { credentials: "same-origin", ...options });
      if (answer.status === 403) throw new Error("refused");
      if (answer.status >= 500) { say(await answer.text()); return null; }
      return { text: await answer.text(), url: answer.url };
    } catch (error) {
      if (error.name !== "AbortError") say("The page has ended, or this window may not use it any more. Start keepsum app again.");
      return null;
    }
  };

  const WRONG = "#said p, main .trouble[role=alert]";
  const wrong = () => [...document.querySelectorAll(WRONG)].map((node) => node.textContent).join();
  const toWrong = () => {  // to the first sentence, and the focus to the field that it marks; a slider keeps it
    const field = document.querySelector("main [aria-invalid=true]");
    if (field && document.activeElement.id !== "slider") field.focus({ preventScroll: true });
    document.querySelector(WRONG).scrollIntoView({ block: "nearest" });
  };

  // One form at a time: what changes meanwhile is sent after the answer, from the version that the answer has.
  let busy = false, pending = null, applying = 0;
  const apply = async (form) => {
    clearTimeout(applying);
    pending = form;
    if (busy) return;
    busy = true;
    while (pending) {
      const sent = pending;
      pending = null;
      const asked = written();
      const answer = await fetched(sent.action, { method: "POST", body: new URLSearchParams(new FormData(sent)) });
      if (!answer) break;
      if (pending && document.contains(pending)) {
        const { version } = new DOMParser().parseFromString(answer.text, "text/html").body.dataset;
        for (const field of document.querySelectorAll("input[name=version]")) field.value = version;
      } else {
        pending = null;
        const before = wrong();
        show(answer.text, answer.url, asked);
        if (wrong() && (wrong() !== before || sent.matches("[data-send]"))) toWrong();
      }
    }
    busy = false;
  };
  const applySoon = (form) => {  // a slider that is moved by keys changes many times a second
    clearTimeout(applying);
    applying = setTimeout(() => document.contains(form) && apply(form), 250);
  };

  const renew = async (current) => {  // the page anew, unless what was asked for meanwhile is newer
    const before = shown, asked = written();
    const page = await fetched(location.href.split("#")[0]);
    if (page && current() && shown === before && !busy) show(page.text, undefined, asked);
  };

  // -- uploads ------------------------------------------------------------------------------------------------------
  const upload = async (file) => {
    const { limit, tooLarge } = $("file").dataset;  // a browser that is still sending may not see the answer
    if (file.size > Number(limit)) { say(tooLarge); return; }
    $("upload").hidden = false;
    $("drop").querySelector("b").textContent = file.name;
    say("");
    const answer = await fetched(`${base}/upload`, {
      method: "POST", body: file,
      headers: { "x-keepsum-csrf": csrf, "x-keepsum-name": encodeURIComponent(file.name), "content-type": "application/octet-stream" },
    });
    if ($("upload")) $("upload").hidden = true;
    if (!answer) return;
    const said = JSON.parse(answer.text);
    if (said.problem) say(said.problem);
    else location.assign(said.to);
  };

  // -- the slider: its number is 100 times the logarithm of epsilon ------------------------------------------------
  let asking = null, waiting = 0;
  const ask = (epsilon) => {
    clearTimeout(waiting);
    const place = document.querySelector(".margin");
    place.classList.add("old");
    waiting = setTimeout(async () => {
      if (asking) asking.abort();
      asking = new AbortController();
      const answer = await fetched(`${base}/margin?epsilon=${encodeURIComponent(epsilon)}`, { signal: asking.signal });
      if (!answer) return;
      const found = JSON.parse(answer.text);
      if (!document.contains(place)) return;
      place.classList.remove("old");
      mark(epsilon, found.typical);
      $("typical").textContent = found.typical === undefined ? "–" : `±${found.typical.toLocaleString("en")}`;
      $("person").textContent = found.problem || (found.person ? `for one person: ${found.person}${found.little ? ", little protection" : ""}` : "");
    }, 150);
  };
  let drawn = "", drawing = null;
  const mark = (epsilon, margin) => {  // the place of an epsilon on the curve, and that of its margin if it is known
    const svg = document.querySelector("#curve svg"), value = Number(epsilon);
    if (!svg || !(value > 0)) return;
    const { left, right, top, bottom, low, high } = Object.fromEntries(Object.entries(svg.dataset).map(([key, text]) => [key, Number(text)]));
    const within = (share) => Math.min(1, Math.max(0, share));
    const x = left + (right - left) * within((Math.log10(value) + 2) / 3);
    const y = bottom - (bottom - top) * within((Math.log10(Math.max(margin ?? 0, 10 ** low)) - low) / (high - low));
    svg.querySelector(".live path").setAttribute("d", `M${x} ${bottom}V${margin === undefined ? top : y}`);
    svg.querySelector(".live circle").setAttribute("cx", margin === undefined ? -9 : x);
    svg.querySelector(".live circle").setAttribute("cy", margin === undefined ? -9 : y);
  };
  const draw = (place, text) => {
    place.hidden = !text;
    if (!text) return;
    place.replaceChildren(document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true));
    const margin = Number($("typical").textContent.replace(/[±,]/g, ""));
    mark($("epsilon").value, Number.isNaN(margin) ? undefined : margin);
  };
  const curve = async () => {  // the last one stays until there is another
    const place = $("curve");
    if (drawing) drawing.abort();
    if (!place) return;
    drawing = new AbortController();
    if (drawn) draw(place, drawn);
    else place.hidden = false;  // its room
    for (let done = false; !done;) {
      const answer = await fetched(`${base}/curve`, { signal: drawing.signal });
      if (!answer || !document.contains(place)) return;
      ({ svg: drawn, done } = JSON.parse(answer.text));
      draw(place, drawn);
    }
  };
  const rounded = (value) => String(Number(value.toPrecision(2)));
  const dial = () => {
    const slider = $("slider"), number = $("epsilon");
    if (!slider) return;
    slider.hidden = false;
    const place = () => { const value = Number(number.value); if (value > 0) slider.value = Math.round(100 * Math.log10(value)); };
    place();
    slider.addEventListener("input", (event) => { event.stopPropagation(); number.value = rounded(10 ** (slider.value / 100)); mark(number.value); ask(number.value); });
    number.addEventListener("input", () => { place(); mark(number.value); ask(number.value); });
    curve();
  };

  // -- cells into a set ---------------------------------------------------------------------------------------------
  const picked = new Set();
  const MOVES = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const step = (event, button, cells) => {
    const line = button.closest("tr"), column = button.closest("td").cellIndex;
    let next = event.key === "Home" ? line.querySelector(".pick") : event.key === "End" ? [...line.querySelectorAll(".pick")].pop() : null;
    if (MOVES[event.key]) {
      const [down, right] = MOVES[event.key];
      let row = line, place = column;
      do {
        row = down > 0 ? row.nextElementSibling : down < 0 ? row.previousElementSibling : row;
        place += right;
        next = row && row.cells[place] && row.cells[place].querySelector(".pick");
      } while (row && row.cells[place] && !next && (down || row.cells[place].tagName === "TD"));
    }
    if (!next) return;
    event.preventDefault();
    for (const other of cells) other.tabIndex = other === next ? 0 : -1;
    next.focus();
  };
  const picks = () => {
    const form = $("set");
    if (!form) { picked.clear(); return; }
    const shown = () => {
      form.hidden = picked.size === 0;
      $("picked").textContent = picked.size;
      $("cells").value = [...picked].join(",");
    };
    const cells = [...document.querySelectorAll(".pick")];
    cells.forEach((button, place) => { button.tabIndex = place ? -1 : 0; });  // one stop for all of them; arrows move within
    for (const button of cells) {
      button.addEventListener("keydown", (event) => step(event, button, cells));
      button.setAttribute("aria-pressed", picked.has(button.dataset.cell));
      button.addEventListener("click", () => {
        const { cell } = button.dataset;
        if (!picked.delete(cell)) picked.add(cell);
        button.setAttribute("aria-pressed", picked.has(cell));
        shown();
      });
    }
    form.addEventListener("submit", () => picked.clear());
    shown();
  };

  // -- progress -----------------------------------------------------------------------------------------------------
  let polling = 0;
  const poll = () => {
    clearTimeout(polling);
    if (!$("progress")) return;
    polling = setTimeout(async () => {
      const answer = await fetched(`${base}/progress`);
      if (!answer || !$("progress")) return;
      const found = JSON.parse(answer.text);
      if (found.done) { await renew(() => $("progress")); return; }
      if ($("stage").textContent !== found.stage) $("stage").textContent = found.stage;
      if (found.fraction) $("bar").value = found.fraction; else $("bar").removeAttribute("value");
      poll();
    }, 400);
  };

  const taken = async (link) => {  // once all of a download was sent, the page says so
    for (let asked = 0; asked < 300 && document.contains(link); asked++) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const answer = await fetched(`${base}/progress`);
      if (!answer) return;
      if (!JSON.parse(answer.text).taken) continue;
      await renew(() => document.contains(link));
      return;
    }
  };

  const begin = () => {
    for (const link of document.querySelectorAll("a[download]")) link.addEventListener("click", () => taken(link));
    for (const form of document.querySelectorAll("form[data-live]")) {
      form.addEventListener("change", (event) => (event.target.id === "slider" ? applySoon(form) : apply(form)));
      form.addEventListener("submit", (event) => { event.preventDefault(); apply(form); });
    }
    for (const form of document.querySelectorAll("form[data-send]")) form.addEventListener("submit", (event) => { event.preventDefault(); apply(form); });
    for (const field of document.querySelectorAll("input[data-into]")) {
      field.addEventListener("change", async () => { if (field.files[0]) $(field.dataset.into).value = await field.files[0].text(); field.value = ""; });
    }
    for (const form of document.querySelectorAll("form[data-once]")) {
      form.addEventListener("submit", (event) => {
        if (form.dataset.sent) event.preventDefault();
        form.dataset.sent = "yes";
        form.querySelector("button").setAttribute("aria-disabled", "true");
      });
    }
    for (const button of document.querySelectorAll(".copy")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        const text = $(button.dataset.copy);
        try { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; } catch { getSelection().selectAllChildren(text); }
      });
    }
    const file = $("file"), drop = $("drop");
    if (file) {
      file.addEventListener("change", () => file.files[0] && upload(file.files[0]));
      for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
      drop.addEventListener("dragleave", () => drop.classList.remove("over"));
      drop.addEventListener("drop", (event) => {
        event.preventDefault();
        drop.classList.remove("over");
        if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
      });
    }
    dial();
    picks();
    poll();
  };
  begin();
})();
