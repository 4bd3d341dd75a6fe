// A field that finds nodes by name, GUID or LID: a combobox with a list.

const mostMatches = 12;

// picker makes one: label names it, only says which nodes fit, and picked gets the node.
function picker(D, id, label, only, picked) {
  const list = el("ul", {id: id + "-list", role: "listbox", "aria-label": label, hidden: true});
  const input = el("input", {id, type: "text", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: label,
    "aria-label": label, "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id + "-list"});
  let matches = [], active = -1;
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = n => {
    input.value = D.names[n];
    close();
    picked(n);
  };
  const activate = i => {
    active = i;
    [...list.children].forEach((li, k) => li.setAttribute("aria-selected", k === i));
    if (i >= 0) {
      input.setAttribute("aria-activedescendant", list.children[i].id);
      list.children[i].scrollIntoView({block: "nearest"});
    }
  };
  const open = () => {
    matches = find(D, input.value, only);
    list.replaceChildren(...matches.map((n, i) => {
      const li = el("li", {role: "option", id: `${id}-${i}`}, el("span", {}, D.names[n]),
        el("small", {}, `${D.isSwitch(n) ? "switch" : "host"}${D.lidOf(n) ? ` · LID ${D.lidOf(n)}` : ""}`));
      li.addEventListener("pointerdown", ev => {
        ev.preventDefault(); // the field keeps the focus
        choose(n);
      });
      return li;
    }));
    list.hidden = matches.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    activate(matches.length ? 0 : -1);
  };
  input.addEventListener("input", open);
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", ev => {
    if (ev.key === "ArrowDown" || ev.key === "ArrowUp") {
      if (list.hidden) open();
      else activate((active + (ev.key === "ArrowDown" ? 1 : matches.length - 1)) % matches.length);
    } else if (ev.key === "Enter") {
      if (list.hidden) open();
      if (active >= 0 && matches[active] !== undefined) choose(matches[active]);
    } else if (ev.key === "Escape" && !list.hidden) {
      close();
      ev.stopPropagation();
    } else return;
    ev.preventDefault();
  });
  return {element: el("div", {class: "picker"}, input, list), input, set: n => { input.value = n < 0 ? "" : D.names[n]; }};
}

// find lists nodes: those whose name is the text first, then those that begin with it,
// then those that have it; or by GUID and LID.
function find(D, text, only) {
  const want = text.trim().toLowerCase();
  if (!want) return [];
  const groups = [[], [], []];
  const guid = want.replace(/^0x/, "");
  for (let n = 0; n < D.nodes; n++) {
    if (!only(n)) continue;
    const name = D.names[n].toLowerCase();
    if (name === want || String(D.lidOf(n)) === want || D.guids[n] === want) groups[0].push(n);
    else if (name.startsWith(want)) groups[1].push(n);
    else if (name.includes(want) || guid.length >= 4 && D.guids[n].includes(guid)) groups[2].push(n);
    if (groups[0].length >= mostMatches) break;
  }
  return groups.flat().slice(0, mostMatches);
}
