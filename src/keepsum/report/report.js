"use strict";
(() => {
  const PAGE = 50, STEPS = 6, RELATIVE = [0.01, 0.05, 0.1, 0.25, 0.5, 1];
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("cells").textContent);
  const ARRAYS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, i8: BigInt64Array };

  const unpack = (packed) => {
    const text = atob(packed.data), bytes = new Uint8Array(text.length);
    for (let k = 0; k < text.length; k++) bytes[k] = text.charCodeAt(k);
    return new ARRAYS[packed.type](bytes.buffer);
  };
  const rows = data.rows;
  const labels = data.labels.map((column) => ({ ...column, codes: unpack(column.codes) }));
  const counts = unpack(data.count.values);
  const unbiased = data.unbiased === null ? null : unpack(data.unbiased.values);
  const drawn = unbiased === null ? counts : unbiased;
  const margins = unpack(data.margins);
  const exact = new Uint8Array(rows);
  for (const row of unpack(data.exact)) exact[Number(row)] = 1;

  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");
  const shown = (value) => {
    const text = value.toString();
    return text[0] === "-" ? "\u2212" + grouped(text.slice(1)) : grouped(text);
  };
  const relative = (row) => {
    const count = Number(drawn[row]), margin = Number(margins[row]);
    return margin === 0 ? 0 : count <= 0 ? Infinity : margin / count;
  };
  const percent = (row) => {
    const part = relative(row);
    if (part === Infinity) return "count \u2264 0";
    if (part === 0) return "0%";
    const value = 100 * part;
    if (value >= 1000) return "over 1,000%";
    if (value < 0.001) return "under 0.001%";
    return (value >= 10 ? value.toFixed(0) : value >= 1 ? value.toFixed(1) : Number(value.toPrecision(1))) + "%";
  };

  // -- which rows, in which order ---------------------------------------------------------------

  const ranks = labels.map((column) => {
    if (column.ordered) return null; // the order of the categories is that of their codes
    const sorted = [...new Set(column.values)].sort(new Intl.Collator("en", { numeric: true }).compare);
    const place = new Map(sorted.map((value, k) => [value, k]));
    return Int32Array.from(column.values, (value) => place.get(value));
  });
  const key = (name) => {
    const k = labels.findIndex((_, k) => name === "label" + k);
    if (k >= 0) {
      const codes = labels[k].codes, rank = ranks[k];
      return rank === null ? (row) => codes[row] : (row) => rank[codes[row]];
    }
    return { count: (row) => counts[row], unbiased: (row) => drawn[row], margin: (row) => margins[row], relative }[name];
  };

  const state = { order: new Uint32Array(rows).map((_, k) => k), page: 0, column: null, falling: false, words: [] };

  const matching = () => {
    if (!state.words.length) return new Uint32Array(rows).map((_, k) => k);
    const hits = state.words.map((word) =>
      labels.map((column) => Uint8Array.from(column.values, (value) => Number(value.toLowerCase().includes(word)))));
    const found = new Uint32Array(rows);
    let length = 0;
    for (let row = 0; row < rows; row++) {
      if (hits.every((columns) => columns.some((hit, k) => hit[labels[k].codes[row]]))) found[length++] = row;
    }
    return found.slice(0, length);
  };
  const arrange = () => {
    const order = matching();
    if (state.column !== null) {
      const of = key(state.column), sign = state.falling ? -1 : 1;
      const values = Array.from(order, of), places = new Uint32Array(order.length).map((_, k) => k);
      places.sort((a, b) => (values[a] < values[b] ? -sign : values[a] > values[b] ? sign : a - b));
      state.order = places.map((place) => order[place]);
    } else state.order = order;
    state.page = 0;
    show();
  };

  // -- shading ----------------------------------------------------------------------------------

  let largest = 0;
  for (let row = 0; row < rows; row++) largest = Math.max(largest, Number(counts[row]));
  const countStep = (row) => {
    const count = Number(counts[row]);
    return count <= 0 ? 0 : Math.min(STEPS, Math.ceil((STEPS * Math.log1p(count)) / Math.log1p(largest) - 1e-9));
  };
  const relativeStep = (row) => {
    const part = relative(row), step = RELATIVE.findIndex((end) => part <= end);
    return step < 0 ? STEPS : step;
  };

  // -- the page of the table --------------------------------------------------------------------

  const cell = (tag, text, name) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const line = (row) => {
    const tr = document.createElement("tr");
    labels.forEach((column, k) => {
      const th = cell(k === 0 ? "th" : "td", column.values[column.codes[row]], "label");
      if (k === 0) th.scope = "row";
      tr.append(th);
    });
    const heat = `number heat c${countStep(row)} r${relativeStep(row)}`;
    tr.append(cell("td", shown(counts[row]), heat));
    if (unbiased !== null) tr.append(cell("td", shown(unbiased[row]), "number"));
    tr.append(cell("td", exact[row] ? "±0: kept exactly" : "±" + shown(margins[row]), "number"));
    tr.append(cell("td", exact[row] ? "0%" : percent(row), "number"));
    return tr;
  };
  const body = $("rows"), status = $("status"), pages = () => Math.max(1, Math.ceil(state.order.length / PAGE));
  const show = () => {
    const start = state.page * PAGE, part = state.order.slice(start, start + PAGE);
    body.replaceChildren(...Array.from(part, line));
    const total = state.order.length;
    status.textContent = total === 0 ? "No row has these words." :
      `Rows ${shown(start + 1)} to ${shown(start + part.length)} of ${shown(total)}` + (state.words.length ? " that match" : "");
    $("place").value = String(state.page + 1);
    $("place").max = String(pages());
    $("pages").textContent = shown(pages());
    $("pager").hidden = pages() === 1;
    // Not "disabled", which would take the focus away from who uses the keyboard.
    $("back").setAttribute("aria-disabled", String(state.page === 0));
    $("on").setAttribute("aria-disabled", String(state.page >= pages() - 1));
  };
  const turn = (page) => {
    if (!Number.isNaN(page)) state.page = Math.min(Math.max(0, page), pages() - 1);
    show();
  };

  for (const button of document.querySelectorAll("#released thead button")) {
    button.addEventListener("click", () => {
      const name = button.dataset.sort, again = state.column === name;
      state.falling = again ? !state.falling : !name.startsWith("label");
      state.column = name;
      for (const th of document.querySelectorAll("#released thead th")) th.removeAttribute("aria-sort");
      button.closest("th").setAttribute("aria-sort", state.falling ? "descending" : "ascending");
      arrange();
    });
  }
  $("filter").addEventListener("input", (event) => {
    state.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    arrange();
  });
  $("back").addEventListener("click", () => turn(state.page - 1));
  $("on").addEventListener("click", () => turn(state.page + 1));
  $("place").addEventListener("change", (event) => turn(parseInt(event.target.value, 10) - 1));
  for (const choice of document.querySelectorAll("input[name=shade]")) {
    choice.addEventListener("change", () => { document.body.dataset.shade = choice.value; });
  }

  // -- the file ---------------------------------------------------------------------------------

  const quoted = (text) => (/[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const whole = (value) => (typeof value === "bigint" ? value : BigInt(value));
  const csv = () => {
    const lines = [[...labels.map((column) => quoted(column.name)), ...data.names.map(quoted)].join(",")];
    const texts = labels.map((column) => column.values.map(quoted));
    const wide = drawn instanceof BigInt64Array || margins instanceof BigInt64Array;
    const number = wide ? whole : Number;
    for (let row = 0; row < rows; row++) {
      const middle = number(drawn[row]), margin = number(margins[row]);
      const numbers = unbiased === null ? [counts[row]] : [counts[row], unbiased[row]];
      lines.push([...texts.map((text, k) => text[labels[k].codes[row]]), ...numbers, margin, middle - margin, middle + margin].join(","));
    }
    return lines.join("\n") + "\n";
  };
  $("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    link.download = $("download").dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });

  for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;
  show();
})();
