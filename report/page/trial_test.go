package page

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/session"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
)

var topologyFlag = flag.String("topology", "", "FILE that TestBrowserTry tries changes of, instead of a tree of eight leaves, or three")

// commands runs ibweave in a folder.
type commands struct {
	*testing.T
	program, dir string
	always       []string // further flags
}

// build builds the program, and the compiler for pages, which the folder has as page.wasm.gz.
func build(t *testing.T) *commands {
	t.Helper()
	short.NeedPrograms(t)
	program := short.Must(built.Program("ibweave", "../../cmd/ibweave", "-ldflags=-w"))(t)
	module := short.Must(built.Module("page.wasm.gz", "../../cmd/ibweave-page"))(t)
	c := &commands{T: t, program: program, dir: t.TempDir()}
	short.Check(t, os.Symlink(module, c.path("page.wasm.gz")))
	return c
}

func (c *commands) path(name string) string { return filepath.Join(c.dir, name) }

// run gives what a command prints, as the page shows text; findings are no failure.
func (c *commands) run(args ...string) []byte {
	c.Helper()
	cmd := exec.Command(c.program, append(args, c.always...)...)
	cmd.Dir = c.dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		c.Fatalf("ibweave %s: %v\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return text.PrintableJSON(out)
}

// nameNodes has all commands from now on call nodes by names that are markup, have quotes and control
// characters, and turn the direction of text.
func (c *commands) nameNodes() {
	c.Helper()
	f := c.fabric("tables")
	var names strings.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		fmt.Fprintf(&names, "%s \"</script><img src=x onerror='hacked=1'>\u202e&amp;\a\x01'%d\"\n", f.Node(n).GUID, n)
	}
	short.Check(c, os.WriteFile(c.path("names"), []byte(names.String()), 0o666))
	c.always = []string{"--node-name-map", "names"}
}

// member is a part of a JSON document, by the names of members and the indices of lists.
func (c *commands) member(data []byte, names ...any) any {
	c.Helper()
	var x any
	if err := json.Unmarshal(data, &x); err != nil {
		c.Fatalf("%v: %s", err, data)
	}
	for _, name := range names {
		switch at := name.(type) {
		case string:
			x = x.(map[string]any)[at]
		case int:
			x = x.([]any)[at]
		}
	}
	return x
}

// fabric reads the topology of a compiled directory.
func (c *commands) fabric(dir string) *fabric.Fabric {
	c.Helper()
	text := short.Must(os.ReadFile(c.path(dir + "/fabric.ibnetdiscover")))(c)
	f, _ := short.Must2(topology.Parse(dir, text, topology.Options{}))(c)
	return f
}

// try is a page on which changes are tried.
type try struct {
	*tab
	*commands
	taken int
	// cablesSaid says that the command has findings about cables, which the page does not look at.
	cablesSaid bool
}

// press clicks on a button of the panel and waits for the answer to the step.
func (p *try) press(button string) []byte {
	p.tab.Helper()
	p.click(button)
	p.taken++
	p.wait("ibweave.trial.state === 'ready' && ibweave.trial.answers.length === %d", p.taken)
	p.tab.Logf("%s: %.0f ms, %.0f of it in the compiler", button, eval[float64](p.tab, "ibweave.trial.took"), eval[float64](p.tab, "ibweave.trial.worked"))
	return []byte(eval[string](p.tab, "JSON.stringify(ibweave.trial.answers.at(-1))"))
}

// wait waits until an expression is true.
func (p *try) wait(format string, args ...any) {
	p.tab.Helper()
	short.Await(p.tab, func() bool { return eval[bool](p.tab, format, args...) }, fmt.Sprintf(format, args...))
}

// same compares documents.
func (p *try) same(what string, want, got any) {
	p.tab.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.tab.Errorf("%s: %s", what, diff)
	}
}

// sameTables holds the tables in the page to those of a compiled directory.
func (p *try) sameTables(dir string) {
	p.tab.Helper()
	f := p.fabric(dir)
	text := short.Must(os.ReadFile(p.path(dir + "/opensm-lfts.dump")))(p.tab)
	tables, _ := short.Must2(dump.ReadLFTs(dir, text, f, dump.Options{}))(p.tab)
	lids := eval[[]int](p.tab, "[...ibweave.data.lids]")
	var want []int
	for s := range fabric.NodeID(f.NumSwitches()) {
		for _, lid := range lids {
			want = append(want, int(tables.Row(s)[lid]))
		}
	}
	if got := eval[[]int](p.tab, "[...ibweave.data.lft]"); !slices.Equal(want, got) {
		p.tab.Errorf("the tables are not those of %s", dir)
	}
}

// compiled keeps tables by command, and holds the last answer of the page to that.
func (p *try) compiled(answer []byte, from, to, topology string, without ...string) {
	p.tab.Helper()
	args := []string{"compile", "-t", topology, "--previous", from, "-o", to, "--format", "json"}
	for _, w := range without {
		args = append(args, "--without", w)
	}
	said := p.run(args...)
	verdict := p.member(said, "verify").(map[string]any)
	delete(verdict, "bound") // the command alone looks for one
	got := p.member(answer, "verify").(map[string]any)
	if p.cablesSaid {
		for _, x := range verdict["findings"].([]any) {
			p.same("finding", cabling.LinkDegraded, x.(map[string]any)["rule"])
		}
		for _, name := range []string{"findings", "verdict"} {
			verdict[name] = got[name]
		}
	}
	p.same("verify", verdict, got)
	changes := p.member(said, "changes").(map[string]any)
	for name, n := range p.member(answer, "changes").(map[string]any) {
		p.same(name, changes[name], n)
	}
	p.sameTables(to)
}

// undo clicks on the button that takes the last step back.
func (p *try) undo() {
	p.tab.Helper()
	p.taken--
	p.click("#try-undo")
	p.wait("ibweave.trial.state === 'ready' && ibweave.trial.answers.length === %d", p.taken)
}

// TestBrowserTryFails: a page whose compiler cannot begin says why, and has no buttons that work.
func TestBrowserTryFails(t *testing.T) {
	c := build(t)
	compiler := short.Must(os.ReadFile(c.path("page.wasm.gz")))(t)
	f := fabrictest.FatTree(t, 4, 2)
	in := compiled(t, f, "updn", compile.Options{})
	in.Base, in.Compiler = []byte("nonsense"), compiler
	p := &try{tab: open(t, in), commands: c}
	p.wait("ibweave.trial.state.startsWith('packed tables: ')")
	p.click("#tab-try")
	p.clickNode(0)
	want(p.tab, true, "document.getElementById('try-fail').disabled")
	want(p.tab, true, "document.getElementById('try-status').textContent.startsWith('There is no compiler: packed tables: ')")
}

// TestBrowserTryMeasures: after a step the map leaf by leaf is that of the new tables, whether it is
// chosen then or shown while steps are taken; counters stay, and loads of jobs and groups, which are those
// of other tables, go.
func TestBrowserTryMeasures(t *testing.T) {
	c := build(t)
	compiler := short.Must(os.ReadFile(c.path("page.wasm.gz")))(t)
	in := compiled(t, fabrictest.FatTree(t, 4, 3), "updn", compile.Options{})
	f := in.Fabric
	e := short.Must(compile.EngineByName("updn"))(t)
	base := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
	in.Compiler = compiler
	in.Base = short.Must(session.Encode(e, base.Routing))(t)
	in.Counters = []Counter{
		{Name: "job a", Unit: "bytes", Values: make([]float64, f.NumPorts()), FromTables: true},
		{Name: "SymbolErrorCounter", Unit: "errors", Values: slices.Repeat([]float64{7}, f.NumPorts())},
	}
	p := &try{tab: open(t, in), commands: c}
	before := eval[[]int](p.tab, "[...ibweave.data.heatLoad]")
	leaf := f.CASwitches()[0]
	up, _ := f.SwitchLinks(leaf)
	s := short.Must(session.Decode(t.Context(), in.Base))(t)
	p.click("#tab-try")
	p.wait("ibweave.trial.state === 'ready'")
	for i, port := range up[:2] {
		step := session.Step{Kind: session.Slow, At: session.End{Node: f.Node(leaf).GUID, Port: f.Num(port)}, Rate: fabric.Link{Width: 1, Speed: fabric.SDR}}
		if i == 0 {
			step = session.Step{Kind: session.Fail, At: step.At}
		}
		short.Must(s.Do(t.Context(), step))(t)
		eval[bool](p.tab, "(ibweave.trial.do(%q), true)", step)
		p.wait("ibweave.trial.state === 'ready' && ibweave.trial.answers.length === %d", i+1)
		want(p.tab, 7, "ibweave.data.counter0[0]")
		if i == 0 {
			want(p.tab, []string{"routes on a link", "SymbolErrorCounter, errors"}, "[...document.querySelectorAll('#colour option')].map(o => o.textContent)")
			want(p.tab, "undefined", "typeof ibweave.data.heatLoad")
			p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "heat map: load")))
		}
		p.wait("!!ibweave.data.heatLoad && ibweave.trial.app.view.heat?.values === ibweave.data.heatLoad")
		now := s.Result()
		x := short.Must(newScene(t.Context(), &Input{State: state.Of(now.Routing), Result: now.Verify}))(t)
		h := short.Must(x.heat(t.Context()))(t)
		for name, list := range map[string]any{"heatLeaf": h.leaves, "heatLoad": h.load, "heatHops": h.hops, "heatPaths": h.paths, "heatLost": h.lost, "heatLIDs": h.lids} {
			data := short.Must(json.Marshal(list))(t)
			want(p.tab, string(data), "JSON.stringify([...ibweave.data.%s])", name)
		}
		if slices.Equal(before, eval[[]int](p.tab, "[...ibweave.data.heatLoad]")) {
			t.Error("the step moves no load")
		}
	}
}

// TestInteractiveSize: a page for 600 hosts with the compiler in it is below 4 MB, with room for more.
func TestInteractiveSize(t *testing.T) {
	short.NeedAll(t) // the compiler for pages is not built for make test
	c := build(t)
	c.run("gen", "tree", "--leaves", "20", "--spines", "20", "--parallel", "1", "--hosts", "30", "--ports", "64", "-o", "fabric.txt")
	c.run("compile", "-t", "fabric.txt", "-e", "updn", "-o", "tables")
	c.run("report", "tables", "--interactive", "--compiler", "page.wasm.gz", "-o", "page.html")
	info, err := os.Stat(c.path("page.html"))
	if err != nil || info.Size() > 3.7e6 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// TestBrowserTry has a cable and a switch fail, brings them back and drains another one, all by
// clicks: the tables, what is written and what the checker says are those of the commands. Then
// the address takes the steps again, and undoing takes them back.
func TestBrowserTry(t *testing.T) {
	c := build(t)
	if *topologyFlag == "" {
		n := fmt.Sprint(short.Of(4, 2)) // leaves with two hosts each, and spines
		c.run("gen", "tree", "--leaves", fmt.Sprint(short.Of(8, 3)), "--spines", n, "--parallel", "2", "--hosts", n, "-o", "fabric.txt")
	} else if err := os.Symlink(*topologyFlag, c.path("fabric.txt")); err != nil {
		t.Fatal(err)
	}
	c.run("compile", "-t", "fabric.txt", "-e", "updn", "-o", "tables")
	c.nameNodes()
	c.run("report", "tables", "--interactive", "--compiler", "page.wasm.gz", "-o", "page.html")
	info := short.Must(os.Stat(c.path("page.html")))(t)
	t.Logf("%d bytes", info.Size())
	f := c.fabric("tables")
	address, lft := "", []int(nil)
	t.Run("clicks", func(t *testing.T) {
		p := &try{tab: openFile(t, c.path("page.html"), "", &Input{State: &state.State{Fabric: f}}), commands: c}
		p.click("#tab-try")
		p.wait("ibweave.trial.warm")
		p.clickThrough()
		address, lft = eval[string](p.tab, "location.hash"), eval[[]int](p.tab, "[...ibweave.data.lft]")
	})
	t.Run("address", func(t *testing.T) {
		p := &try{tab: openFile(t, c.path("page.html"), address, &Input{State: &state.State{Fabric: f}}), commands: c, taken: 5}
		p.wait("ibweave.trial.answers.length === 5 && ibweave.trial.state === 'ready'")
		want(p.tab, address, "location.hash")
		want(p.tab, lft, "[...ibweave.data.lft]")
		p.click("#tab-try")
		for p.taken > 0 {
			p.undo()
		}
		p.sameTables("tables")
		want(p.tab, "", "location.hash")
	})
	if !testing.Short() {
		t.Run("firefox", func(t *testing.T) { inFirefox(t, c.path("page.html"), address, lft) })
	}
}

// inFirefox holds the steps of an address, and undoing the last one, to what Chromium shows.
func inFirefox(t *testing.T, name, address string, lft []int) {
	b := startFirefox(t)
	b.open(name, address)
	wait := func(condition string) {
		t.Helper()
		short.Await(t, func() bool { return ask[bool](b, "!!ibweave && "+condition) }, condition)
	}
	wait("ibweave.trial.answers.length === 5 && ibweave.trial.state === 'ready'")
	short.EqualList(t, lft, ask[[]int](b, "Array.from(ibweave.data.lft)"), "Firefox has other tables than Chromium")
	ask[bool](b, "document.getElementById('try-undo').click() || true")
	wait("ibweave.trial.answers.length === 4 && ibweave.trial.state === 'ready'")
}

// clickThrough takes the steps.
func (p *try) clickThrough() {
	p.tab.Helper()
	f := p.in.Fabric
	// A cable, where it is alone on the drawing, once that is there.
	p.wait("ibweave.trial.app.view.seen.length > 0")
	at := eval[[]float64](p.tab, `(() => {
		const {x, y, width, height} = document.getElementById("fabric").getBoundingClientRect(), {view} = ibweave.trial.app;
		for (let i = 1; i < 100; i++) for (let k = 1; k < 100; k++) {
			const at = [i * width / 100, k * height / 100];
			if (view.nodeAt(...at) < 0 && view.edgeAt(...at) >= 0 && !document.elementFromPoint(x + at[0], y + at[1]).closest(".legend, .tools")) return [x + at[0], y + at[1]];
		}
	})()`)
	p.tab.must(chromedp.Do(p.ctx, chromedp.MouseClickXY(at[0], at[1])))
	cable := fabric.PortID(eval[int](p.tab, "ibweave.trial.port"))
	end := func(n fabric.NodeID) string { return f.Node(n).GUID.String() }
	port := fmt.Sprintf("%s:%d", end(f.Owner(cable)), f.Num(cable))
	p.same("chosen", port, eval[string](p.tab, "ibweave.trial.end(-1, ibweave.trial.port)"))
	answer := p.press("#try-fail")
	p.compiled(answer, "tables", "one", "fabric.txt", port)
	said := p.run("whatif", "-t", "fabric.txt", "-e", "updn", "--fail", "links", "--switch", end(f.Owner(cable)), "--fail-on", "never", "--format", "json")
	number := p.member(answer, "whatif", "number")
	found := false
	for _, x := range p.member(said, "cases").([]any) {
		if x.(map[string]any)["number"] == number {
			found = true
			p.same("whatif", x, p.member(answer, "whatif"))
		}
	}
	if !found {
		p.tab.Errorf("whatif has no case %v", number)
	}
	want(p.tab, 1, "ibweave.trial.app.view.marks.length")
	want(p.tab, int(p.member(answer, "changes", "switches").(float64)), "document.querySelectorAll('#try-writes tr').length")

	// A switch without hosts that the cable does not lead to; then both come back, the cable by a click
	// where it was.
	spine := fabric.NoNode
	for s := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(s)) == 0 && s != f.Owner(cable) && s != f.Owner(f.Peer(cable)) {
			spine = s
		}
	}
	p.clickNode(spine)
	p.compiled(p.press("#try-fail"), "one", "two", "one/fabric.ibnetdiscover", end(spine))
	p.click("#clear")
	p.click("#try-steps li:first-child button")
	p.compiled(p.press("#try-restore"), "two", "three", "tables/fabric.ibnetdiscover", end(spine))
	p.clickNode(spine)
	p.compiled(p.press("#try-restore"), "three", "four", "tables/fabric.ibnetdiscover")
	want(p.tab, 0, "ibweave.trial.app.view.marks.length")

	p.slowDown(cable)
	p.recable(cable)
	p.namesAreText()

	leaf := f.Owner(cable)
	if len(f.HostsOn(leaf)) == 0 {
		leaf = f.Owner(f.Peer(cable))
	}
	p.clickNode(leaf)
	answer = p.press("#try-drain")
	p.same("drain", p.member(p.run("drain", "four", "--switch", end(leaf), "--format", "json", "-o", "plan")), p.member(answer, "drain"))
	p.sameTables("plan/window-1/step-1")
	// Steps of two kinds are no plan.
	p.click("#try-export")
	p.wait("document.getElementById('try-status').textContent.includes('want steps of one kind')")
}

// slowDown gives a cable another rate, and takes that back.
func (p *try) slowDown(cable fabric.PortID) {
	p.tab.Helper()
	p.click("#clear")
	p.click("#try-steps li:first-child button")
	if !eval[bool](p.tab, "!!document.getElementById('try-rate')") {
		p.tab.Fatal("the cable has no slower rate")
	}
	rate, ok := fabric.ParseLink(eval[string](p.tab, "document.getElementById('try-rate').value"))
	if !ok {
		p.tab.Fatal("the first rate is none")
	}
	f := p.fabric("four")
	f = f.WithLinks(map[fabric.PortID]fabric.Link{cable: rate, f.Peer(cable): rate})
	short.Check(p.tab, os.WriteFile(p.path("slow.txt"), topology.Append(nil, f), 0o666))
	p.cablesSaid = true
	p.compiled(p.press("#try-slow"), "four", "slow", "slow.txt")
	p.cablesSaid = false
	want(p.tab, 1, "ibweave.trial.app.view.marks.length")
	p.undo()
	p.sameTables("four")
}

// recable plugs the far end of a cable into another switch, has all steps as a plan for the command
// line, and takes the last one back.
func (p *try) recable(cable fabric.PortID) {
	p.tab.Helper()
	f := p.in.Fabric
	far := f.Owner(f.Peer(cable))
	goal := fabric.NoPort
	for s := range fabric.NodeID(f.NumSwitches()) {
		if s == far || s == f.Owner(cable) || (len(f.HostsOn(s)) > 0) != (len(f.HostsOn(far)) > 0) {
			continue
		}
		for num := f.Node(s).NumPorts; num > 0 && goal == fabric.NoPort; num-- {
			if q := f.Port(s, num); f.Peer(q) == fabric.NoPort || f.PeerSwitch(q) != fabric.NoNode {
				goal = q
			}
		}
	}
	p.click("#try-to")
	p.keys(f.Node(f.Owner(goal)).GUID.String())
	p.keys(kb.Enter)
	p.click("#try-port")
	p.keys(fmt.Sprint(f.Num(goal)))
	p.press("#try-recable")
	p.click("#try-export")
	p.wait("!!document.getElementById('try-file')")
	p.same("command", "ibweave move DIR steps.yaml -o plan", p.text("#try-command"))
	short.Check(p.tab, os.WriteFile(p.path("steps.yaml"), []byte(eval[string](p.tab, "document.getElementById('try-file').textContent")), 0o666))
	want(p.tab, "steps.yaml", "document.querySelector('#trial a[download]').download")
	p.run("move", "tables", "steps.yaml", "-o", "moved")
	p.sameTables("moved/step-5/after")
	p.undo()
}

// namesAreText: what the nodes are called is text, in the panel, in lists of matches, and in tips, and
// characters that hide or turn the direction of text are escaped.
func (p *try) namesAreText() {
	p.tab.Helper()
	const name = `</script><img src=x onerror='hacked=1'>\\u202e&amp;\\x07\\x01'` // of JavaScript
	p.click("#find")
	p.keys("onerror")
	want(p.tab, true, "document.getElementById('find-list').textContent.includes(\"%s\")", name)
	p.keys(kb.Escape)
	eval[bool](p.tab, "(document.getElementById('find').value = '', true)")
	at := eval[[]float64](p.tab, "ibweave.screen(0)")
	p.must(chromedp.Do(p.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1])))
	p.wait("!document.getElementById('tip').hidden")
	want(p.tab, true, "document.getElementById('tip').textContent.includes(\"%s\")", name)
	want(p.tab, true, "document.getElementById('try-steps').textContent.includes(\"%s\")", name)
	want(p.tab, 0, "document.querySelectorAll('img, #trial script').length")
	want(p.tab, "undefined", "typeof hacked")
}
