package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// The browser and its tab are shared by all tests: a tab for each page would cost half a second
// of CPU time.
var browser = sync.OnceValues(func() (context.Context, error) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		return nil, fmt.Errorf("no Chromium; install it with apt-get install chromium, or run scripts/install-tools.sh")
	}
	// It draws without an emulated GPU and keeps no process ready for a next site: a third less CPU time.
	// Under -short it does not optimize the page's compiler, which works for less time than that takes.
	ctx, closeAll := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox,
		chromedp.Flag("js-flags", short.Of("", "--liftoff-only")),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-software-rasterizer", true), chromedp.Flag("in-process-gpu", true),
		chromedp.Flag("disable-features", "Translate,SpareRendererForSitePerProcess,BackForwardCache"),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1440, 900))
	ctx, closeTab := chromedp.NewContext(ctx)
	closeBrowser = func() {
		closeTab()
		closeAll()
	}
	return ctx, chromedp.Do(ctx)
})

var closeBrowser = func() {}

func TestMain(m *testing.M) {
	status := m.Run()
	closeBrowser()
	os.Exit(status)
}

// tab is an open page.
type tab struct {
	*testing.T
	ctx context.Context
	in  *Input
}

// open writes a page and opens it from its file, in place of that of the test before. When the
// test ends, the page must have asked for nothing but itself, and said nothing on the console.
func open(t *testing.T, in *Input) *tab {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	file := short.Must(os.Create(name))(t)
	short.Check(t, Write(context.Background(), file, in))
	short.Check(t, file.Close())
	return openFile(t, name, "", in)
}

// openFile is open for a page that is written, with a fragment of its address; in has the fabric.
func openFile(t *testing.T, name, fragment string, in *Input) *tab {
	t.Helper()
	short.NeedAll(t)
	shared := short.Must(browser())(t)
	ctx, stop := context.WithTimeout(shared, 10*time.Minute) // it is hung
	p := &tab{t, ctx, in}
	p.ctx = ctx
	var (
		mu      sync.Mutex
		trouble []string
	)
	if fragment != "" { // else the browser stays on the page that it has
		p.must(chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	}
	own := (&url.URL{Scheme: "file", Path: name}).String()
	asked := 0
	p.must(chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			if url, _, _ := strings.Cut(e.Request.URL, "#"); url == own {
				asked++
			} else if !strings.HasPrefix(e.Request.URL, "blob:null/") { // the text of a worker, from the page itself

				trouble = append(trouble, "the page asks for "+e.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			trouble = append(trouble, fmt.Sprintf("exception: %+v", e.ExceptionDetails.Exception.Description))
		case *runtime.EventConsoleAPICalled:
			trouble = append(trouble, fmt.Sprintf("console: %v", e.Args))
		case *log.EventEntryAdded:
			trouble = append(trouble, "log: "+e.Entry.Text)
		}
	}))
	t.Cleanup(func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		for _, s := range trouble {
			t.Error(s)
		}
		short.Equal(t, asked, 1, "the page was asked")
	})
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	p.must(err)
	_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	p.must(err)
	p.must(chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(own+fragment), chromedp.WaitReady(chromedp.CSS("html[data-ready]"))))
	return p
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// eval is what JavaScript says.
func eval[T any](p *tab, format string, args ...any) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](fmt.Sprintf(format, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
	return v
}

// quoted is a string in JavaScript.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// click clicks on the middle of an element, with the mouse.
func (p *tab) click(selector string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(selector))))
}

// clickNode clicks on a node in the drawing.
func (p *tab) clickNode(n fabric.NodeID, opts ...chromedp.MouseOption) {
	p.Helper()
	at := eval[[]float64](p, "ibweave.screen(%d)", n)
	p.must(chromedp.Do(p.ctx, chromedp.MouseClickXY(at[0], at[1], opts...)))
}

func (p *tab) keys(keys string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.KeyEvent(keys)))
}

func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, "(document.querySelector(%s) || {innerText: 'no such element'}).innerText", quoted(selector))
}

// want compares what an expression gives.
func want[T any](p *tab, want T, format string, args ...any) {
	p.Helper()
	if diff := cmp.Diff(want, eval[T](p, format, args...)); diff != "" {
		p.Errorf("%s: %s", fmt.Sprintf(format, args...), diff)
	}
}

// node finds a node by name.
func (p *tab) node(name string) fabric.NodeID {
	p.Helper()
	for n := range fabric.NodeID(p.in.Fabric.NumNodes()) {
		if p.in.Fabric.Node(n).Description == name {
			return n
		}
	}
	p.Fatalf("no %q", name)
	return 0
}

// port is a host's only port.
func (p *tab) port(n fabric.NodeID) fabric.PortID { return p.in.Fabric.Port(n, 1) }

// outs are the ports that a path leaves.
func outs(path Path) []int {
	list := []int{}
	for _, h := range path.Hops {
		list = append(list, int(h.Out))
	}
	return list
}

// TestBrowserPaths: every path in the page is that of the tables, with its VLs, and so
// are those that end nowhere, and the fans of adaptive routing.
func TestBrowserPaths(t *testing.T) {
	all := maps.Clone(inputs(t))
	all["choices"] = withChoices(t, all["broken torus"], 4)
	for _, name := range short.Keys(all, "broken torus", "choices") {
		in := all[name]
		t.Run(name, func(t *testing.T) {
			p := open(t, in)
			f := in.Fabric
			type answer struct {
				SL   int
				Outs []int
				VLs  []int
				// Shares are those of the hops, in millionths, and the one that is lost.
				Shares []int
				Lost   bool
			}
			var lids []fabric.LID
			for l, at := range f.LIDPorts() {
				if at != fabric.NoPort {
					lids = append(lids, fabric.LID(l))
				}
			}
			ports := short.Of(f.CAPorts(), f.CAPorts()[:3])
			srcs, err := json.Marshal(ports)
			p.must(err)
			list, err := json.Marshal(lids)
			p.must(err)
			got := eval[[]answer](p, `%s.flatMap(src => %s.map(lid => {
				const path = ibweave.path(src, lid);
				return {SL: path.sl, Outs: path.hops.map(h => h.out), VLs: path.hops.map(h => h.vl), Shares: [...path.hops.map(h => h.share), path.lostShare].map(x => Math.round(1e6 * x)), Lost: path.lost !== ""};
			}))`, srcs, list)
			i := 0
			for _, src := range ports {
				for _, lid := range lids {
					path := in.Path(src, lid)
					wanted := answer{SL: int(path.SL), Outs: outs(path), VLs: []int{}, Lost: path.Lost != ""}
					for _, h := range path.Hops {
						wanted.VLs = append(wanted.VLs, int(h.VL))
						wanted.Shares = append(wanted.Shares, int(math.Round(1e6*h.Share)))
					}
					wanted.Shares = append(wanted.Shares, int(math.Round(1e6*path.LostShare)))
					short.Diff(t, got[i], wanted, "from", f.PortName(src), "to LID", lid)
					i++
				}
			}
			want(p, in.Result.Verdict, "document.getElementById('verdict').textContent")
		})
	}
}

// TestBrowserClicks: a click on a switch shows it, clicks on two hosts the path between
// them, a link its load, and the bound fades links.
func TestBrowserClicks(t *testing.T) {
	p := open(t, compiled(t, fabrictest.FatTree(t, 8, 2), "updn", compile.Options{}))
	f := p.in.Fabric
	s, err := newScene(context.Background(), p.in)
	p.must(err)

	leaf := p.node("leaf 3")
	p.clickNode(leaf)
	want(p, "leaf 3", "document.querySelector('#panel-node h2').textContent")
	want(p, "true", "document.querySelector('#tab-node').getAttribute('aria-selected')")
	rows := eval[[][]string](p, "[...document.querySelectorAll('#links tbody tr')].map(tr => [...tr.cells].map(td => td.textContent))")
	short.MustEqual(t, len(rows), 8, "links of a leaf with 8 cables")
	for i, row := range rows {
		at := f.Port(leaf, fabric.PortNum(i+1))
		peer := f.Peer(at)
		lids := 0
		for l, out := range p.in.Tables.Row(leaf) {
			if f.LIDPort(fabric.LID(l)) != fabric.NoPort && out == f.Num(at) {
				lids++
			}
		}
		if diff := cmp.Diff([]string{
			fmt.Sprint(i + 1), fmt.Sprintf("%s port %d", f.Node(f.Owner(peer)).Description, f.Num(peer)), f.Link(at).String(),
			fmt.Sprint(s.routes[at]), fmt.Sprint(s.routes[peer]), fmt.Sprint(lids),
		}, row); diff != "" {
			t.Error(diff)
		}
	}
	// The table of the switch, filtered.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#entries-filter"), "host 2 leaf 1")))
	at := f.LID(p.port(p.node("host 2 leaf 1")))
	want(p, []string{fmt.Sprint(at), "host 2 leaf 1", fmt.Sprint(p.in.Tables.Row(leaf)[at])},
		"[...document.querySelectorAll('#entries tbody tr')].flatMap(tr => [...tr.cells].map(td => td.textContent))")

	// Two hosts.
	a, b := p.node("host 1 leaf 0"), p.node("host 0 leaf 7")
	p.clickNode(a)
	p.clickNode(b, chromedp.ButtonModifiers(chromedp.ModifierShift))
	path := p.in.Path(p.port(a), f.LID(p.port(b)))
	want(p, outs(path), "ibweave.shown()")
	names := []string{"host 1 leaf 0"}
	for _, h := range path.Hops {
		names = append(names, f.Node(f.Owner(f.Peer(h.Out))).Description)
	}
	want(p, names, "[...document.querySelectorAll('#path .steps button')].map(b => b.textContent)")
	short.Contains(t, p.text("#path .outcome"), fmt.Sprintf("Delivered to LID %d through 3 switches", f.LID(p.port(b))))
	if got, port := p.text("#path .steps li:nth-child(2)"), f.Num(path.Hops[1].Out); !strings.Contains(got, fmt.Sprintf("in by port 2, out of port %d · VL 0", port)) {
		t.Error(got)
	}
	p.click("#swap")
	want(p, outs(p.in.Path(p.port(b), f.LID(p.port(a)))), "ibweave.shown()")

	// A link, halfway between its ends; Clear; and nothing.
	spine := p.node("spine 0")
	x := eval[[][]float64](p, "[ibweave.screen(%d), ibweave.screen(%d)]", p.node("leaf 0"), spine)
	p.must(chromedp.Do(p.ctx, chromedp.MouseClickXY(0.4*x[0][0]+0.6*x[1][0], 0.4*x[0][1]+0.6*x[1][1])))
	if got := p.text("#shown span"); !strings.HasPrefix(got, "leaf 0[5] — spine 0[1]: ") {
		t.Error(got)
	}
	p.click("#clear")
	want(p, true, "ibweave.shown() === null && document.getElementById('shown').hidden")

	// The histograms are verify's numbers.
	p.click("#tab-overview")
	for hops, n := range p.in.Result.Unicast.HopHistogram {
		if n > 0 && !strings.Contains(p.text("#panel-overview"), fmt.Sprint(n)) {
			t.Errorf("no %d pairs of %d switches in the overview", n, hops)
		}
	}
	channels := eval[int](p, "[...document.querySelectorAll('ul[aria-label=\"Links by routes\"] .value')].reduce((n, v) => n + parseInt(v.textContent.replaceAll(',', '')), 0)")
	short.Equal(t, channels, 2*4*8, "links in the histogram, the fabric")
}

// TestBrowserKeys does everything without a mouse.
func TestBrowserKeys(t *testing.T) {
	p := open(t, compiled(t, fabrictest.Grid(t, 1, false, 5, 4), "xy", compile.Options{Groups: withGroups}))
	f := p.in.Fabric
	// Tab goes through the page in the order in which it is read.
	var order []string
	for range 5 {
		p.keys(kb.Tab)
		order = append(order, eval[string](p, "document.activeElement.id || document.activeElement.className"))
	}
	short.Diff(t, order, []string{"skip", "find", "theme", "fabric", "zoom-in"})
	// What has the focus shows it.
	want(p, "solid", "getComputedStyle(document.activeElement).outlineStyle")

	// The search: a list by arrow keys, Enter.
	p.keys("/") // from a button
	want(p, "find", "document.activeElement.id")
	p.keys(kb.Backspace + "switch 2,") // the protocol types the character although the page took the key
	want(p, 4, "document.querySelectorAll('#find-list li').length")
	p.keys(kb.ArrowDown + kb.ArrowDown)
	want(p, "switch 2,2", "document.querySelector('#find-list [aria-selected=true] span').textContent")
	p.keys(kb.Enter)
	want(p, "switch 2,2", "document.querySelector('#panel-node h2').textContent")
	want(p, true, "document.querySelector('#find-list').hidden")

	// The drawing: right, up, Enter; Escape.
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys(kb.ArrowRight)
	want(p, "switch 3,2, switch, LID "+fmt.Sprint(f.LID(f.Port(p.node("switch 3,2"), 0))), "document.getElementById('live').textContent")
	p.keys(kb.ArrowUp + kb.Enter)
	want(p, "switch 3,3", "document.querySelector('#panel-node h2').textContent")
	want(p, "Links of switch 3,3", "document.querySelector('#shown span').textContent")
	before := eval[[]float64](p, "ibweave.screen(0)")
	p.keys("+")
	if after := eval[[]float64](p, "ibweave.screen(0)"); after[0] >= before[0] {
		t.Errorf("+ moves switch 0,0 from %v to %v", before, after)
	}
	p.keys("0")
	want(p, before, "ibweave.screen(0)")
	p.keys(kb.Escape)
	want(p, true, "ibweave.shown() === null")

	// A path by f and t on the drawing: from the host of 3,3 to that of 0,3.
	p.keys(kb.ArrowRight) // the first switch
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#find"), "host 3,3"+kb.Enter), chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys("f")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#find"), "host 0,3"+kb.Enter), chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys("t")
	a, b := p.node("host 3,3"), p.node("host 0,3")
	want(p, outs(p.in.Path(p.port(a), f.LID(p.port(b)))), "ibweave.shown()")

	// And by the fields, which Escape closes first.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#to"), "host 4,0")))
	p.keys(kb.Escape)
	want(p, false, "ibweave.shown() === null")
	p.keys(kb.Enter + kb.Enter)
	want(p, outs(p.in.Path(p.port(a), f.LID(p.port(p.node("host 4,0"))))), "ibweave.shown()")

	// Tabs.
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#tab-path"))))
	p.keys(kb.ArrowRight)
	want(p, "tab-groups", "document.activeElement.id")
	p.keys(kb.End)
	want(p, "tab-findings", "document.activeElement.id")
	p.keys(kb.ArrowRight)
	want(p, "tab-overview", "document.activeElement.id")
	want(p, 1, "document.querySelectorAll('[role=tabpanel]:not([hidden])').length")

	// Everything that can be used has a name.
	want(p, []string{}, `[...document.querySelectorAll('button, input, select, [tabindex="0"]')]
		.filter(e => !(e.textContent.trim() || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML)`)
}

// TestBrowserUndecided shows what is undecided before the findings, and opens them.
func TestBrowserUndecided(t *testing.T) {
	all := map[string]*Input{
		"safe":  compiled(t, fabrictest.Grid(t, 1, false, 3, 3), "xy", compile.Options{}),
		"loops": compiled(t, fabrictest.Grid(t, 1, true, 4, 4), "minhop", compile.Options{}),
	}
	for _, name := range short.Keys(all, "safe") {
		in := all[name]
		t.Run(name, func(t *testing.T) {
			in.Result.Leave(verify.Undecided{Rule: verify.CreditLoop, Reason: "rows are <b>missing</b>"})
			p := open(t, in)
			want(p, in.Result.Verdict, "document.getElementById('verdict').textContent")
			want(p, true, "document.getElementById('verdict').classList.contains('warning') || document.getElementById('verdict').classList.contains('error')")
			want(p, "true", "document.querySelector('#tab-findings').getAttribute('aria-selected')")
			want(p, []string{"undecidedcredit-looprows are <b>missing</b>"}, "[...document.querySelectorAll('#undecided > li')].map(e => e.textContent)")
		})
	}
}

// TestBrowserFindings filters, and shows a credit loop.
func TestBrowserFindings(t *testing.T) {
	size := short.Of(6, 4)
	in := broken(t, compiled(t, fabrictest.Grid(t, 1, true, size, size), "minhop", compile.Options{}), short.Of(30, 15), 2)
	p := open(t, in)
	all := in.Result.Findings
	count := func(fits func(i int) bool) (n int) {
		for i := range all {
			if fits(i) {
				n++
			}
		}
		return n
	}
	const shown = "document.querySelectorAll('#findings > li').length"
	want(p, len(all), shown)
	want(p, "true", "document.querySelector('#tab-findings').getAttribute('aria-selected')") // errors come first

	rule := all[len(all)-1].Rule
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#rule"), rule)))
	want(p, count(func(i int) bool { return all[i].Rule == rule }), shown)
	want(p, []string{rule}, "[...new Set([...document.querySelectorAll('#findings code')].map(c => c.textContent))]")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#rule"), kb.Home)))
	want(p, len(all), shown)

	severity := all[0].Severity.String()
	p.click(".filter." + severity)
	want(p, count(func(i int) bool { return all[i].Severity.String() != severity }), shown)
	p.click(".filter." + severity)

	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#findings-text"), "CIRCLE of absent")))
	want(p, 0, shown)
	want(p, fmt.Sprintf("0 of %d findings", len(all)), "document.getElementById('findings-count').textContent")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#findings-text"), strings.Repeat(kb.Backspace, 16)+"credit-LOOP")))
	want(p, count(func(i int) bool { return all[i].Rule == "credit-loop" }), shown)

	// The loop: the channels of the cycle, each waiting for the next.
	p.click("#findings .finding")
	cycle := in.Result.CreditLoops.Cycles[0]
	ports := []int{}
	for _, h := range cycle {
		s, _ := in.Fabric.SwitchByGUID(h.Switch)
		ports = append(ports, int(in.Fabric.Port(s, h.Port)))
	}
	want(p, ports, "ibweave.shown()")
	want(p, len(cycle), "document.querySelectorAll('.ring .arc').length")
	short.Contains(t, p.text("#loop .steps li"), fmt.Sprintf("port %d · VL %d: a packet to LID %d", cycle[0].Port, cycle[0].VL, cycle[0].LID))
}

// TestBrowserGroups: a click on a group shows the ports of its tree.
func TestBrowserGroups(t *testing.T) {
	g := open(t, compiled(t, fabrictest.Grid(t, 1, false, 5, 4), "xy", compile.Options{Groups: withGroups}))
	g.click("#tab-groups")
	for i, tree := range g.in.groups() {
		g.click(fmt.Sprintf("[data-group=\"%d\"]", i))
		want := []int{}
		for _, at := range g.in.Multicast.Tables.Ports(tree.MLID) {
			if g.in.Fabric.Num(at) != fabric.ManagementPort {
				want = append(want, int(at))
			}
		}
		if len(tree.Senders) < len(tree.Receivers) {
			for _, at := range tree.Senders {
				want = append(want, int(at))
			}
		}
		slices.Sort(want)
		got := eval[[]int](g, "ibweave.shown()")
		slices.Sort(got)
		short.Diff(t, got, want, tree.Name)
	}
}

// labelled is a fabric with a label on each port of its switches and hosts.
func labelled(t *testing.T, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	b := &fabric.Builder{}
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(b.AddNode(*f.Node(n)))(t)
		for num := range f.Node(n).NumPorts + 1 {
			at := f.Port(n, num)
			if guid := f.PortGUID(at); guid != 0 {
				short.Check(t, b.SetPort(int(n), num, guid, f.LID(at), f.LMC(at)))
			}
			if num > 0 {
				short.Check(t, b.SetLabel(int(n), num, fmt.Sprintf("%d/%d/1", n, num)))
			}
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	return short.Must(b.Build())(t)
}

// TestBrowserLabels: wherever the page says a port it says the label of just this port.
func TestBrowserLabels(t *testing.T) {
	in := broken(t, compiled(t, labelled(t, fabrictest.Grid(t, 1, true, 4, 4)), "minhop", compile.Options{}), 30, 2)
	p := open(t, in)
	f := in.Fabric
	bare := regexp.MustCompile(`port \d+\b[^(]|\[\d+\][^(]`)
	check := func(what, text string) {
		t.Helper()
		short.Equal(t, bare.FindString(text+" "), "", what, "has a port without its label", text)
		named := 0
		for _, m := range regexp.MustCompile(`(\d+)\]?\((\d+)/(\d+)/1\)`).FindAllStringSubmatch(text, -1) {
			if named++; m[1] != m[3] {
				t.Errorf("%s has the label of another port: %s", what, m[0])
			}
		}
		if named == 0 {
			t.Errorf("%s has no label:\n%s", what, text)
		}
	}
	cycle := in.Result.CreditLoops.Cycles[0]
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#findings-text"), "credit-loop")))
	p.click("#findings .finding")
	check("the loop", p.text("#loop"))
	want(p, fmt.Sprintf("port %d(%s)", cycle[0].Port, cycle[0].Label), "document.querySelector('.ring .port').textContent")
	check("a finding", eval[string](p, "document.querySelector('#findings').textContent"))

	s := p.node("switch 1,2")
	p.clickNode(s)
	rows := eval[[][]string](p, "[...document.querySelectorAll('#links tbody tr')].map(tr => [...tr.cells].map(td => td.textContent))")
	for i, row := range rows {
		at := f.Port(s, fabric.PortNum(i+1))
		peer := f.Peer(at)
		short.Diff(t, row[:2], []string{f.PortText(at), f.Name(f.Owner(peer)).Text + " port " + f.PortText(peer)})
	}
	entries := eval[[]string](p, "[...document.querySelectorAll('#entries tbody tr')].map(tr => tr.cells[2].textContent)")
	out := slices.IndexFunc(entries, func(s string) bool { return strings.Contains(s, "(") })
	if out < 0 {
		t.Errorf("no entry with a label: %q", entries)
	} else {
		check("an entry", entries[out])
	}
	a, b := p.node("host 0,0"), p.node("host 1,0")
	p.clickNode(a)
	p.clickNode(b, chromedp.ButtonModifiers(chromedp.ModifierShift))
	check("a path", p.text("#path"))
	p.click("#tab-overview")
	check("the overview", p.text("#panel-overview"))
}

// TestBrowserThemes: as the browser likes, and by the switch.
func TestBrowserThemes(t *testing.T) {
	p := open(t, compiled(t, fabrictest.Grid(t, 1, false, 3, 3), "xy", compile.Options{}))
	like := func(what string) {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: what}},
		})
		p.must(err)
	}
	defer like("")
	const ground = "getComputedStyle(document.body).backgroundColor"
	const day, night = "rgb(251, 251, 250)", "rgb(16, 20, 26)"
	like("light")
	want(p, day, ground)
	like("dark")
	want(p, night, ground)
	p.click("#theme")
	want(p, day, ground)
	p.click("#theme")
	want(p, night, ground)
	// The drawing follows: a pixel of a switch is light on dark.
	pixel := func() int {
		return eval[int](p, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
			const [x, y] = ibweave.screen(4), box = document.getElementById('base').getBoundingClientRect();
			const copy = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
			copy.drawImage(document.getElementById('base'), box.left - x, box.top - y);
			done(copy.getImageData(0, 0, 1, 1).data[0]);
		})))`)
	}
	if v := pixel(); v < 150 {
		t.Errorf("a switch is %d of 255 bright on a dark ground", v)
	}
	p.click("#theme")
	if v := pixel(); v > 100 {
		t.Errorf("a switch is %d of 255 bright on a light ground", v)
	}
}

// TestBrowserWithout: pages without tables, and with tables too large for a page.
func TestBrowserWithout(t *testing.T) {
	in := *compiled(t, fabrictest.Grid(t, 1, false, 3, 3), "xy", compile.Options{})
	overview := func(name, says string) {
		t.Run(name, func(t *testing.T) {
			p := open(t, &in)
			want(p, false, "!!document.getElementById('tab-path')")
			short.Contains(t, p.text("#panel-overview"), says)
			p.clickNode(4)
			want(p, 5, "document.querySelectorAll('#links tbody tr').length")
			// A map needs tables, boxes do not.
			want(p, in.Tables != nil, "!!document.getElementById('mode')")
			want(p, len(in.Groupings) > 0, "document.querySelectorAll('#boxes option').length === 2")
			if len(in.Groupings) > 0 {
				p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#boxes"), "racks")))
				want(p, true, "(ibweave.view.boxes.settle(), ibweave.hides(%d))", in.Groupings[0].Groups[0].Nodes[0])
			}
		})
	}
	in.MaxEntries = 10
	overview("large", "does not hold the forwarding tables: they have 162 entries, more than the 10")
	in.Tables, in.SL2VL, in.PathSLs = nil, nil, nil
	rack := []fabric.NodeID{}
	for n := range fabric.NodeID(in.Fabric.NumNodes()) {
		if !in.Fabric.IsSwitch(n) && len(rack) < 3 {
			rack = append(rack, n)
		}
	}
	in.Groupings = []Grouping{{Name: "racks", Groups: []Group{{"rack 1", rack}}}}
	overview("none", "There are no forwarding tables")
}

// BenchmarkOpen is how long a page of 845 switches and 4,394 hosts takes until it is
// drawn, and until the click on a host is answered.
func BenchmarkOpen(b *testing.B) {
	in := compiled(b, fabrictest.FatTree(b, 26, 3), "updn", compile.Options{})
	name := filepath.Join(b.TempDir(), "report.html")
	file := short.Must(os.Create(name))(b)
	short.Check(b, Write(context.Background(), file, in))
	short.Check(b, file.Close())
	shared := short.Must(browser())(b)
	var opened, answered time.Duration
	for b.Loop() {
		ctx, cancel := chromedp.NewContext(shared)
		start := time.Now()
		short.Check(b, chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate("file://"+name), chromedp.WaitReady(chromedp.CSS("html[data-ready]"))))
		// After the first picture.
		const drawn = "new Promise(done => requestAnimationFrame(() => setTimeout(() => done(true))))"
		short.Must(chromedp.Run(ctx, chromedp.Evaluate[bool](drawn, chromedp.EvalAwaitPromise)))(b)
		opened += time.Since(start)
		at := short.Must(chromedp.Run(ctx, chromedp.Evaluate[[]float64]("ibweave.screen(400)")))(b)
		start = time.Now()
		short.Check(b, chromedp.Do(ctx, chromedp.MouseClickXY(at[0], at[1])))
		if title, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.querySelector('#panel-node h2').textContent")); err != nil || title == "" {
			b.Fatal(title, err)
		}
		short.Must(chromedp.Run(ctx, chromedp.Evaluate[bool](drawn, chromedp.EvalAwaitPromise)))(b)
		answered += time.Since(start)
		cancel()
	}
	b.ReportMetric(opened.Seconds()/float64(b.N), "s-to-open")
	b.ReportMetric(answered.Seconds()/float64(b.N), "s-to-answer")
}

// TestBrowserCounters: links are coloured by the counter that is chosen, with its unit, mean and greatest
// value in the legend, and a port without a counter is said to have none.
func TestBrowserCounters(t *testing.T) {
	in := *compiled(t, fabrictest.FatTree(t, 8, 2), "updn", compile.Options{})
	f := in.Fabric
	leaf, _ := f.SwitchByGUID(f.Node(f.CASwitches()[0]).GUID)
	ports, _ := f.SwitchLinks(leaf)
	waits := make([]float64, f.NumPorts())
	for p := range waits {
		waits[p] = 1e6
	}
	waits[ports[1]], waits[ports[0]], waits[f.Peer(ports[0])] = 32.5e6, -1, -1
	in.Counters = []Counter{
		{Name: "PortXmitWait", Unit: "ticks per second", Values: waits},
		{Name: "SymbolErrorCounter", Unit: "errors", Values: make([]float64, f.NumPorts())},
	}
	p := open(t, &in)
	want(p, []string{"routes on a link", "PortXmitWait, ticks per second", "SymbolErrorCounter, errors"}, "[...document.querySelectorAll('#colour option')].map(o => o.textContent)")
	// The keyboard chooses too.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#colour"), "PortX")))
	channels := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		channels += len(f.Neighbors(s))
	}
	mean := (1e6*float64(channels-3) + 32.5e6) / float64(channels-2)
	want(p, []string{"0", fmt.Sprintf("mean %.2f M", mean/1e6), "32.5 M"}, "[...document.querySelectorAll('.ticks span')].map(o => o.textContent)")
	p.clickNode(leaf)
	rows := eval[[][]string](p, "[...document.querySelectorAll('#links tbody tr')].map(tr => [...tr.cells].map(td => td.textContent).slice(-2))")
	for i, c := range []fabric.PortID{ports[0], ports[1], ports[2]} {
		short.EqualList(t, rows[f.Num(c)-1], [][]string{{"unknown", "unknown"}, {"32.5 M", "1 M"}, {"1 M", "1 M"}}[i], f.PortName(c))
	}
	colours := eval[[]string](p, `[...document.querySelectorAll('#links tbody tr')].slice(-4).map(tr => getComputedStyle([...tr.cells].at(-2).querySelector('i')).getPropertyValue('--colour'))`)
	if hot := colours[slices.Index(ports, ports[1])]; hot == colours[2] || colours[2] != colours[3] || colours[0] == colours[2] {
		t.Errorf("colours of links: %q", colours)
	}
	// The port with the most is first in the list, and a click shows its cable.
	p.click("#tab-overview")
	p.click("#most li:first-child button")
	want(p, []int{int(ports[1])}, "ibweave.shown()")
	short.Contains(t, p.text("#shown"), "PortXmitWait 32.5 M at port ")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#colour"), "Sym")))
	short.Contains(t, p.text("#panel-overview"), "No port has counted any.")
	short.Contains(t, p.text("#legend"), "0 on all links")
	p.keys(kb.Home)
	want(p, "0", "document.activeElement.value")
	want(p, 6, "document.querySelector('#links tbody tr').cells.length")
}

// firefox is a headless Firefox that is driven by its own protocol, Marionette: a length, a
// colon, and a JSON list of type, number, error and result, or of type, number, command and
// parameters.
type firefox struct {
	*testing.T
	conn net.Conn
	from *bufio.Reader
	sent int
}

// startFirefox starts one without a network. It ends with the test.
func startFirefox(t *testing.T) *firefox {
	t.Helper()
	short.NeedAll(t)
	program, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Fatal("no Firefox; install it with apt-get install firefox-esr, or run scripts/install-tools.sh")
	}
	home := t.TempDir()
	profile := filepath.Join(home, "profile")
	short.Check(t, os.Mkdir(profile, 0o700))
	const prefs = `user_pref("marionette.port", 0);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
`
	short.Check(t, os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs), 0o600))
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--headless", "--no-remote", "--marionette", "--profile", profile)
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.WaitDelay = 10 * time.Second
	short.Check(t, cmd.Start())
	b := &firefox{T: t}
	t.Cleanup(func() {
		if b.conn != nil {
			b.call("Marionette:Quit", map[string]any{"flags": []string{"eForceQuit"}})
			b.conn.Close()
			time.AfterFunc(10*time.Second, stop)
		} else {
			stop()
		}
		_ = cmd.Wait() // it was told to end
		stop()
	})
	port := ""
	short.Await(t, func() bool {
		data, _ := os.ReadFile(filepath.Join(profile, "MarionetteActivePort"))
		port = strings.TrimSpace(string(data))
		return port != ""
	}, "Firefox opens no port")
	conn := short.Must(net.Dial("tcp", net.JoinHostPort("127.0.0.1", port)))(t)
	b.conn, b.from = conn, bufio.NewReader(conn)
	b.read() // it says who it is
	b.call("WebDriver:NewSession", map[string]any{})
	return b
}

// read reads a message.
func (b *firefox) read() []byte {
	b.Helper()
	length := short.Must(b.from.ReadString(':'))(b)
	n := short.Must(strconv.Atoi(strings.TrimSuffix(length, ":")))(b)
	data := make([]byte, n)
	short.Must(io.ReadFull(b.from, data))(b)
	return data
}

// call gives what a command gives.
func (b *firefox) call(command string, params map[string]any) json.RawMessage {
	b.Helper()
	b.sent++
	text := short.Must(json.Marshal([]any{0, b.sent, command, params}))(b)
	short.Must(fmt.Fprintf(b.conn, "%d:%s", len(text), text))(b)
	var reply []json.RawMessage
	if data := b.read(); json.Unmarshal(data, &reply) != nil || len(reply) != 4 || string(reply[2]) != "null" {
		b.Fatalf("%s: %s", command, data)
	}
	return reply[3]
}

// open opens a file with a fragment of its address.
func (b *firefox) open(name, fragment string) {
	b.Helper()
	b.call("WebDriver:Navigate", map[string]any{"url": (&url.URL{Scheme: "file", Path: name}).String() + fragment})
}

// ask is what JavaScript says.
func ask[T any](b *firefox, expression string) (value T) {
	b.Helper()
	// Where a wall keeps scripts of Marionette from what the page defines, this is the door.
	script := "const ibweave = (window.wrappedJSObject || window).ibweave; return JSON.stringify(" + expression + ")"
	var text struct{ Value string }
	data := b.call("WebDriver:ExecuteScript", map[string]any{"script": script, "args": []string{}})
	if err := json.Unmarshal(data, &text); err != nil {
		b.Fatalf("%s: %v", data, err)
	}
	if err := json.Unmarshal([]byte(text.Value), &value); err != nil {
		b.Fatalf("%s: %v", text.Value, err)
	}
	return value
}
