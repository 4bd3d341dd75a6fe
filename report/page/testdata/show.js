(async name => {
	const views = (() => {
	const {data: D} = ibweave, stage = document.getElementById("fabric"), $ = id => document.getElementById(id);
	const send = (name, detail) => stage.dispatchEvent(new CustomEvent(name, {detail}));
	const set = (list, value) => {
		if (!list || ![...list.options].some(o => o.value === value)) return false;
		list.value = value;
		list.dispatchEvent(new Event("change"));
		return true;
	};
	const press = button => Boolean(button) && (button.click(), true);
	const middle = Math.floor(D.switches / 2), ends = [D.switches, D.nodes - 1].filter(n => n < D.nodes);
	const views = {
		fabric: () => press($("tab-overview")),
		switch: () => (send("pick", {node: middle, edge: -1}), true),
		host: () => ends.length > 1 && (send("pick", {node: ends[0], edge: -1}), true),
		cable: () => D.edges > 0 && (send("pick", {node: -1, edge: D.edges >> 1}), true),
		path: () => D.tables === "here" && ends.length > 1 && (send("end", {node: ends[0], which: "f"}), send("end", {node: ends[1], which: "t"}), true),
		fan: () => D.tables === "here" && ends.length > 1 && (send("end", {node: ends[1], which: "t"}), press($("from-all")) || true),
		zoom: () => (ibweave.zoom(3), true),
		group: () => press($("tab-groups")) && press(document.querySelector("[data-group]")),
		loop: () => press($("tab-loops")) && press(document.querySelector("[data-loop]")),
		findings: () => press($("tab-findings")) && Boolean(document.querySelector(".finding")),
		difference: () => press($("tab-changes")) && press(document.querySelector("[data-change]")),
		old: () => press($("state-old")),
		boxes: () => set($("boxes"), "0"),
		open: () => set($("boxes"), "0") && (ibweave.view.boxes.open(0), true),
		"heat-load": () => set($("mode"), "load"),
		"heat-hops": () => set($("mode"), "hops"),
		"heat-paths": () => set($("mode"), "paths"),
		try: () => press($("tab-try")) && (send("pick", {node: -1, edge: 0}), true),
	};
	for (const [i, m] of D.measures.entries()) if (i > 0) views["cables-" + m.name.replace(/\W+/g, "-")] = () => set($("colour"), String(i));
	return views;
})();
	if (!name) return Object.keys(views);
	const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
	const $ = id => document.getElementById(id);
	for (const [id, value] of [["mode", ""], ["boxes", "-1"], ["colour", "0"]]) {
		if ($(id) && $(id).value !== value) ($(id).value = value, $(id).dispatchEvent(new Event("change")));
	}
	if ($("state-both") && !$("state-both").checked) $("state-both").click();
	$("fabric").dispatchEvent(new CustomEvent("escape"));
	$("tab-overview").click();
	ibweave.view.fit();
	await frame();
	if (!views[name]()) return null;
	document.activeElement.blur();
	while (!ibweave.written()) await frame();
	const bad = [], root = document.documentElement, [w, h] = [innerWidth, innerHeight];
	const say = (e, what) => bad.push(what + ": " + e.outerHTML.slice(0, 100));
	if (root.scrollWidth > w || root.scrollHeight > h) bad.push("the window scrolls: " + root.scrollWidth + " x " + root.scrollHeight);
	const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
	const stage = document.querySelector(".stage").getBoundingClientRect();
	const parts = [...document.querySelectorAll(".legend, .tools, .modes, .states, .shown")].filter(e => e.checkVisibility() && e.childNodes.length);
	const clash = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
	parts.forEach((e, i) => {
		const box = e.getBoundingClientRect();
		if (!inside(box, stage)) say(e, "beyond the drawing");
		for (const o of parts.slice(i + 1)) if (clash(box, o.getBoundingClientRect())) say(e, "on " + o.className);
	});
	// Controls on the drawing, and with all of the fabric to be seen its nodes.
	const controls = [...document.querySelectorAll(".stage select, .stage button, .stage input[type=range], .key")].filter(e => e.checkVisibility());
	controls.forEach((e, i) => {
		for (const o of controls.slice(i + 1)) if (!e.contains(o) && clash(e.getBoundingClientRect(), o.getBoundingClientRect())) say(e, "on " + o.outerHTML.slice(0, 60));
	});
	if (ibweave.view.fitted && !name.startsWith("heat")) {
		const {D, scale: s} = ibweave.view, {left, top} = $("fabric").getBoundingClientRect();
		for (let n = 0; n < D.switches; n++) {
			const [x, y] = ibweave.view.screen(n), r = D.radius[n] * s, at = {left: left + x - r, right: left + x + r, top: top + y - r, bottom: top + y + r};
			for (const e of parts) if (clash(at, e.getBoundingClientRect())) say(e, "on switch " + n);
		}
	}
	// All text that is to be seen, by its lines.
	const lines = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	const scrolls = e => e && e !== document.body && (/auto|scroll/.test(getComputedStyle(e).overflow + getComputedStyle(e).overflowX) ? e : scrolls(e.parentElement));
	while (walk.nextNode()) {
		const text = walk.currentNode, e = text.parentElement;
		if (!text.data.trim() || e.closest("script, style, option, noscript, .hidden, .skip, [hidden]") || !e.checkVisibility()) continue;
		range.selectNodeContents(text);
		const panel = e.closest("header, .stage, aside").getBoundingClientRect(), scroller = scrolls(e), wide = scroller && (scroller.id === "tabs" || scroller.matches(".scroll, pre"));
		for (const box of range.getClientRects()) {
			if (box.width < 1 || box.bottom <= panel.top || box.top >= panel.bottom) continue;
			const view = scroller ? scroller.getBoundingClientRect() : panel;
			if (box.bottom <= view.top + 2 || box.top >= view.bottom - 2) continue; // to be scrolled to
			if (!wide && (box.left < panel.left - 1 || box.right > panel.right + 1)) say(e, "beyond its panel");
			for (let o = e; o && !o.matches("aside, header, .stage"); o = o.parentElement) {
				const style = getComputedStyle(o), edge = o.getBoundingClientRect();
				if (/hidden|clip/.test(style.overflow) && (box.right > edge.right + 1 || box.bottom > edge.bottom + 3)) say(e, "cut");
			}
			if (!wide || box.left >= view.left && box.right <= view.right) lines.push({box, e});
		}
	}
	lines.sort((a, b) => a.box.top - b.box.top);
	lines.forEach(({box, e}, i) => {
		for (let k = i + 1; k < lines.length && lines[k].box.top < box.bottom - 3; k++) {
			const o = lines[k].box, sticky = e.closest("th") || lines[k].e.closest("th"); // heads of tables stay over the rows
			if (!sticky && box.left < o.right - 2 && o.left < box.right - 2) say(e, "on " + lines[k].e.outerHTML.slice(0, 60));
		}
	});
	for (const e of document.querySelectorAll("[role=tabpanel]:not([hidden])")) if (e.scrollWidth > e.clientWidth + 1) say(e, "scrolls sideways");
	// Names on the canvas.
	const names = ibweave.written().map(([left, top, right, bottom, text]) => ({left, top, right, bottom, text}));
	const seen = names.filter(n => n.right > 0 && n.left < ibweave.view.width && n.bottom > 0 && n.top < ibweave.view.height).sort((a, b) => a.top - b.top);
	const frame0 = $("fabric").getBoundingClientRect(), covers = parts.map(e => e.getBoundingClientRect());
	seen.forEach((n, i) => {
		const at = {left: n.left + frame0.left, right: n.right + frame0.left, top: n.top + frame0.top, bottom: n.bottom + frame0.top};
		if (name !== "zoom" && name !== "open") for (const o of covers) if (clash(at, o)) bad.push("the name " + n.text + " is under a part of the page");
		if (name !== "zoom" && name !== "open" && (n.left < 0 || n.right > ibweave.view.width || n.top < 0 || n.bottom > ibweave.view.height)) bad.push("cut at the edge: " + n.text);
		for (let k = i + 1; k < seen.length && seen[k].top < n.bottom - 2; k++) if (clash(n, seen[k])) bad.push("the name " + n.text + " is on " + seen[k].text);
	});
	return {Bad: [...new Set(bad)].slice(0, 8), Names: seen.length};
})
