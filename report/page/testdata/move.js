(async () => {
	const r = {First: 0, Frames: [], Zooming: [], Tasks: [], Pictures: 0, Sizes: [], LongestMap: 0};
	const next = () => new Promise(requestAnimationFrame);
	while (!ibweave.drawn()) await next();
	r.First = ibweave.drawn();
	await new Promise(done => setTimeout(done, 500));
	const observer = new PerformanceObserver(list => r.Tasks.push(...list.getEntries().map(e => e.duration)));
	observer.observe({entryTypes: ["longtask"]});
	const during = async (list, n, step) => {
		let last = await next();
		for (let i = 0; i < n; i++) {
			step(i);
			const now = await next();
			list.push(now - last);
			last = now;
		}
	};
	const pan = list => during(list, %[1]d, i => ibweave.pan(i %% 60 < 30 ? 12 : -12, i %% 90 < 45 ? 7 : -7));
	for (const factor of [1, 2, 2, 2, 3]) {
		await during(r.Zooming, 10, () => ibweave.zoom(factor ** 0.1));
		r.Sizes.push(factor);
		await pan(r.Frames);
	}
	const mode = document.getElementById("mode"), frames = [];
	if (mode) {
		mode.value = "load";
		mode.dispatchEvent(new Event("change"));
		await next();
		await pan(frames);
		await during(r.Zooming, 20, () => ibweave.zoom(1.2));
		await pan(frames);
		r.LongestMap = Math.max(...frames);
		r.Frames.push(...frames);
	}
	await new Promise(done => setTimeout(done, 200));
	observer.disconnect();
	r.Pictures = ibweave.pictures();
	return r;
})()