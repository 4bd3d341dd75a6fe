package page

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// twoStates is a fat tree, and the same without a switch and a cable, with another cable plugged
// elsewhere and a slow one.
func twoStates(t *testing.T) *Input {
	t.Helper()
	f := fabrictest.FatTree(t, 8, 2)
	named := func(name string) fabric.NodeID {
		for n := range fabric.NodeID(f.NumNodes()) {
			if f.Node(n).Description == name {
				return n
			}
		}
		t.Fatalf("no %q", name)
		return 0
	}
	gone, leaf := named("spine 3"), named("leaf 1")
	b := &fabric.Builder{}
	at := make([]int, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		if n == gone {
			continue
		}
		var err error
		if at[n], err = b.AddNode(*f.Node(n)); err != nil {
			t.Fatal(err)
		}
	}
	host := named("host 0 leaf 1")
	slow := f.Port(leaf, 5)
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q < p || f.Owner(p) == gone || f.Owner(q) == gone {
			continue
		}
		link, x, y := f.Link(p), f.Num(p), f.Num(q)
		if p == slow || q == slow {
			link.Width = 1
		}
		if f.Owner(p) == leaf && f.Owner(q) == host {
			x = 8 // the port of the switch that is gone
		}
		short.Check(t, b.Connect(at[f.Owner(p)], x, at[f.Owner(q)], y, link))
	}
	g := short.Must(b.Build())(t)
	old, now := compiled(t, f, "updn", compile.Options{}), compiled(t, g, "updn", compile.Options{})
	old.Name, now.Name, old.Title = "yesterday", "today", "yesterday"
	both := short.Must(Union(old.Fabric, now.Fabric, nil))(t)
	now.Old = &Old{Input: old, Both: &Input{State: &state.State{Fabric: both}, Levels: cabling.Recognize(both).Level(), Result: verify.Unverified(both)}}
	end := func(name string, port fabric.PortNum) End {
		n := named(name)
		return End{f.Node(n).GUID, f.IsSwitch(n), port}
	}
	racks := Grouping{Name: "racks"}
	for _, leaf := range []string{"leaf 2", "leaf 5"} {
		rack := Group{Name: "rack of " + leaf}
		for i := range 4 {
			n, ok := nodeOf(both, end(fmt.Sprintf("host %d %s", i, leaf), 0))
			if !ok {
				t.Fatalf("no host %d of %s", i, leaf)
			}
			rack.Nodes = append(rack.Nodes, n)
		}
		racks.Groups = append(racks.Groups, rack)
	}
	now.Old.Both.Groupings = []Grouping{racks}
	now.Old.Changes = []Change{
		{Kind: NodeGone, Text: "switch spine 3", Old: []End{end("spine 3", 0)}},
		{Kind: CableGone, Text: "leaf 0[8] — spine 3[1]", Old: []End{end("leaf 0", 8), end("spine 3", 1)}},
		{Kind: Moved, Text: "<b>host 0</b> leaf 1", Old: []End{end("host 0 leaf 1", 1), end("leaf 1", 1)}, New: []End{end("host 0 leaf 1", 1), end("leaf 1", 8)}},
		{Kind: Rate, Text: "leaf 1[5]", New: []End{end("leaf 1", 5), end("spine 0", 2)}},
		{Kind: Entries, Text: "leaf 2: 3 entries", New: []End{end("leaf 2", 0)}},
	}
	now.Old.Summary = []Note{{Severity: verify.Warning, Text: "packets can loop"}}
	return now
}

// movedLoads lists the new ports between switches with other routes than before.
func movedLoads(t *testing.T, in *Input) (ports []int) {
	t.Helper()
	old, now := short.Must2(scenes(context.Background(), in))(t)
	f := in.Fabric
	for p := range fabric.PortID(f.NumPorts()) {
		if !f.IsSwitch(f.Owner(p)) || f.Peer(p) == fabric.NoPort || f.PeerSwitch(p) == fabric.NoNode {
			continue
		}
		s, _ := in.Old.Fabric.SwitchByGUID(f.Node(f.Owner(p)).GUID)
		if now.routes[p] != old.routes[in.Old.Fabric.Port(s, f.Num(p))] {
			ports = append(ports, int(p))
		}
	}
	return ports
}

// TestBrowserStates: the page lights what differs, lists it, and shows either state with its own
// tables at the same places.
func TestBrowserStates(t *testing.T) {
	in := twoStates(t)
	p := open(t, in)
	moved := movedLoads(t, in)
	if len(moved) < 10 {
		t.Fatalf("%d channels with another load: too few to tell", len(moved))
	}
	shown := func() []int {
		list := eval[[]int](p, "ibweave.shown()")
		slices.Sort(list)
		return list
	}
	short.Diff(t, shown(), moved)
	want(p, fmt.Sprintf("5 differences, %d channels with another load", len(moved)), "document.querySelector('#shown span').textContent")
	want(p, []string{"loop gone", "loop gone", "tree", "warning"}, "ibweave.states.marks().map(m => m.colour + (m.gone ? ' gone' : ''))")
	want(p, []string{"switch spine 3", "leaf 0[8] — spine 3[1]", "<b>host 0</b> leaf 1", "leaf 1[5]", "leaf 2: 3 entries"}, "[...document.querySelectorAll('[data-change]')].map(b => b.textContent)")
	if got := p.text("#panel-changes"); !strings.Contains(got, "packets can loop") || !strings.Contains(got, "12 → 11") || !strings.Contains(got, fmt.Sprintf("%d → %d", in.Old.Result.Balance.MaxRoutes, in.Result.Balance.MaxRoutes)) {
		t.Error(got)
	}
	if got := p.text("#legend"); !strings.Contains(got, "gone") || !strings.Contains(got, "fewer") {
		t.Error(got)
	}

	// One change, and all again.
	p.click("[data-change='2']")
	want(p, "<b>host 0</b> leaf 1", "document.querySelector('#shown span').textContent")
	want(p, []string{"true"}, "[...document.querySelectorAll('[data-change][aria-pressed=true]')].map(b => b.ariaPressed)")
	p.click("#clear")
	want(p, len(moved), "ibweave.shown().length")

	// The old state, by keys: its switch is there, and its paths are those of its tables.
	place := fmt.Sprintf("ibweave.screen(ibweave.find(%s))", quoted("leaf 6"))
	before := eval[[]float64](p, "%s", place)
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#state-both"))))
	p.keys(kb.ArrowLeft)
	want(p, true, "document.getElementById('state-old').checked")
	want(p, before, "%s", place)
	want(p, "spine 3", "ibweave.data.names[ibweave.find('spine 3')]")
	old := &tab{t, p.ctx, in.Old.Input}
	a, b := old.node("host 0 leaf 1"), old.node("host 2 leaf 6")
	old.clickNode(a)
	old.clickNode(b, chromedp.ButtonModifiers(chromedp.ModifierShift))
	want(p, outs(in.Old.Path(old.port(a), in.Old.Fabric.LID(old.port(b)))), "ibweave.shown()")
	// The same path in the new state.
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#state-old"))))
	p.keys(kb.ArrowRight + kb.ArrowRight)
	want(p, true, "document.getElementById('state-new').checked")
	want(p, -1, "ibweave.find('spine 3')")
	c, d := p.node("host 0 leaf 1"), p.node("host 2 leaf 6")
	want(p, outs(in.Path(p.port(c), in.Fabric.LID(p.port(d)))), "ibweave.shown()")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#find"), "spine 2"+kb.Enter)))
	want(p, "Links of spine 2", "document.querySelector('#shown span').textContent")

	// Boxes have the nodes of each state, and stay closed or open from one to the other.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#boxes"), "racks")))
	hidden := "[%d, %d].map(n => (ibweave.view.boxes.settle(), ibweave.hides(n)))"
	want(p, []bool{true, false}, hidden, p.node("host 0 leaf 2"), p.node("host 0 leaf 3"))
	eval[bool](p, "(ibweave.view.boxes.open(0), true)")
	p.click("#state-old + span")
	want(p, []bool{false, true}, hidden, old.node("host 0 leaf 2"), old.node("host 0 leaf 5"))
	want(p, "racks as boxes", "document.getElementById('boxes').selectedOptions[0].textContent")
	// The list of maps says what is shown in either state.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "heat map: hops")))
	p.click("#state-new + span")
	want(p, []string{"hops", "hops"}, "[document.getElementById('mode').value, ibweave.view.heat.kind]")
	want(p, true, "document.getElementById('boxes').hidden")
	eval[bool](p, "delete ibweave.states.old.heatLeaf") // as without tables
	p.click("#state-old + span")
	want(p, []bool{true, true, false}, "[ibweave.view.heat, document.getElementById('mode')].map(x => x === null).concat(document.getElementById('boxes').hidden)")
	p.click("#state-new + span")
	want(p, []bool{true, true}, "[document.getElementById('mode').value === '', ibweave.view.heat === null]")
}

// TestStates: places are the same in both states, and the page has the same bytes twice.
func TestStates(t *testing.T) {
	in := twoStates(t)
	old, now := short.Must2(scenes(context.Background(), in))(t)
	for n := range fabric.NodeID(in.Fabric.NumNodes()) {
		was, ok := in.Old.Fabric.NodeByGUID(in.Fabric.Node(n).GUID)
		if !ok || old.x[was] != now.x[n] || old.y[was] != now.y[n] {
			t.Errorf("%s is elsewhere", in.Fabric.Name(n))
		}
	}
	var one, two bytes.Buffer
	for _, b := range []*bytes.Buffer{&one, &two} {
		short.Check(t, Write(context.Background(), b, in))
	}
	short.EqualList(t, one.Bytes(), two.Bytes(), "other bytes")
}

// TestReplaced: a switch with another GUID keeps its routes.
func TestReplaced(t *testing.T) {
	f := fabrictest.FatTree(t, 8, 2)
	b := &fabric.Builder{}
	gone, came := f.Node(fabric.NodeID(f.NumSwitches()-1)).GUID, fabric.GUID(0)
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		if node.GUID == gone {
			came = gone + 1
			node.GUID = came
		}
		short.Must(b.AddNode(node))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); p < q && q != fabric.NoPort {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	g := short.Must(b.Build())(t)
	old, now := compiled(t, f, "updn", compile.Options{}), compiled(t, g, "updn", compile.Options{})
	old.Name, now.Name = "yesterday", "today"
	replaced := map[fabric.GUID]fabric.GUID{gone: came}
	both := short.Must(Union(old.Fabric, now.Fabric, replaced))(t)
	now.Old = &Old{Input: old, Both: &Input{State: &state.State{Fabric: both}, Levels: cabling.Recognize(both).Level(), Result: verify.Unverified(both)}, Replaced: replaced}
	want(open(t, now), 0, "ibweave.states.moved.length")
}

var update = flag.Bool("update", false, "write the pictures of docs/pictures again")

// mostOther is the part of a picture that may differ: letters, where a browser has other fonts.
const mostOther = 0.04

// TestDocsPictures holds the pictures of the page in docs to what it looks like now.
func TestDocsPictures(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     *Input
		clicks []string
		path   [2]string
	}{
		{"report-path", compiled(t, fabrictest.FatTree(t, 8, 3), "updn", compile.Options{}), nil, [2]string{"host 0 leaf 1 pod 1", "host 2 leaf 3 pod 6"}},
		{"report-credit-loop", compiled(t, fabrictest.Grid(t, 1, true, 6, 6), "minhop", compile.Options{}), []string{"#tab-loops", "[data-loop='0']"}, [2]string{}},
		{"report-multicast", compiled(t, fabrictest.Grid(t, 1, false, 8, 6), "xy", compile.Options{Groups: withGroups}), []string{"#tab-groups", "[data-group='1']"}, [2]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.Title = "fabric"
			p := open(t, c.in)
			if c.path[0] != "" {
				p.clickNode(p.node(c.path[0]))
				p.clickNode(p.node(c.path[1]), chromedp.ButtonModifiers(chromedp.ModifierShift))
			}
			for _, selector := range c.clicks {
				p.click(selector)
			}
			eval[bool](p, "(document.activeElement.blur(), new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))")
			got, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			p.must(err)
			name := "../../docs/pictures/" + c.name + ".png"
			if *update {
				p.must(os.WriteFile(name, got, 0o644))
			}
			want, err := os.ReadFile(name)
			p.must(err)
			if part := differing(t, got, want); part > mostOther {
				t.Errorf("%s: %.1f %% of it differs from the page; go test ./report/page -run DocsPictures -update writes it again", name, 100*part)
			}
		})
	}
}

// differing is the part of the pixels of two pictures that are clearly others.
func differing(t *testing.T, a, b []byte) float64 {
	t.Helper()
	var pictures [2]image.Image
	for i, data := range [][]byte{a, b} {
		var err error
		if pictures[i], err = png.Decode(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	x, y := pictures[0], pictures[1]
	if x.Bounds() != y.Bounds() {
		return 1
	}
	other, box := 0, x.Bounds()
	for v := box.Min.Y; v < box.Max.Y; v++ {
		for u := box.Min.X; u < box.Max.X; u++ {
			r, g, b, _ := x.At(u, v).RGBA()
			r2, g2, b2, _ := y.At(u, v).RGBA()
			const clear = 0x2000
			if max(r, r2)-min(r, r2) > clear || max(g, g2)-min(g, g2) > clear || max(b, b2)-min(b, b2) > clear {
				other++
			}
		}
	}
	return float64(other) / float64(box.Dx()*box.Dy())
}

// TestBrowserReading: missing and slow cables are marked, names have what tells them apart, those of a
// row are in natural order, aggregation nodes are small, and at 400 px nothing is beyond an edge.
func TestBrowserReading(t *testing.T) {
	f := short.Must(gen.Options{AggregationNodes: true}.Apply(fabrictest.FatTree(t, 24, 2)))(t)
	in := compiled(t, f, "updn", compile.Options{})
	f = in.Fabric
	end := func(n fabric.NodeID, p fabric.PortNum) verify.Endpoint {
		return verify.Endpoint{Node: f.Node(n).GUID, Port: p}
	}
	ports, to := f.SwitchLinks(0)
	in.Result.Add(
		verify.Finding{Rule: "missing-cable", Severity: verify.Error, Message: "missing", Ports: []verify.Endpoint{end(0, f.Num(ports[0])), end(to[0], 1)}},
		verify.Finding{Rule: "link-degraded", Severity: verify.Warning, Message: "slow", Ports: []verify.Endpoint{end(0, f.Num(ports[1])), end(to[1], 1)}})
	p := open(t, in)
	want(p, []string{"loop true", "warning false"}, "ibweave.view.marks.map(m => `${m.colour} ${m.gone}`).sort()")
	want(p, []string{"missing", "slow"}, "[...document.querySelectorAll('#legend > span.loop, #legend > span.warning')].map(e => e.textContent)")
	leaves := []string{}
	for i := range 24 {
		leaves = append(leaves, fmt.Sprintf("leaf %d", i))
	}
	want(p, leaves, "ibweave.data.names.map((name, n) => [ibweave.data.x[n], name]).filter(([, name]) => /^leaf \\d+$/.test(name)).sort((a, b) => a[0] - b[0]).map(([, name]) => name)")
	want(p, true, "(() => { const D = ibweave.data, a = D.type.indexOf(4), h = D.type.indexOf(1); return a > 0 && h > 0 && D.radius[a] < 0.8 * D.radius[h]; })()")
	p.must(chromedp.Do(p.ctx, chromedp.EmulateViewport(400, 800)))
	want(p, []string{}, `[...document.querySelectorAll('header *, .legend, .legend *, #tabpanels, .tools')].filter(e => e.checkVisibility() && !e.closest('option')).filter(e => {
		const box = e.getBoundingClientRect();
		return box.left < 0 || box.right > 400.5;
	}).map(e => e.outerHTML.slice(0, 80))`)
}

// TestParallelCables: cables that are missing between the same switches are all counted, and their line
// joins these switches.
func TestParallelCables(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 4, Spines: 2, Parallel: 4}))(t)
	ports, to := f.SwitchLinks(0)
	other := slices.Index(to[1:], to[0]) + 1
	in := compiled(t, f.Without(ports[0], ports[other]), "updn", compile.Options{})
	in.Result.Findings = cabling.Check(in.Fabric, cabling.Options{}).Findings
	if list := in.Result.Findings; len(list) != 1 || list[0].Count != 2 || len(list[0].Ports) != 4 {
		t.Fatalf("findings %+v, want one of two cables", list)
	}
	p := short.Must(Draw(context.Background(), in, View{}))(t)
	i, _ := p.edgeBetween(0, to[0])
	if !strings.HasPrefix(p.lines[1], "missing cables: 2,") || len(p.faults) != 1 || !p.faults[0].missing || p.faults[0].curve != p.curve(i) {
		t.Errorf("%q, lines %v, want %v", p.lines[1], p.faults, p.curve(i))
	}
	want(open(t, in), [][]int{{0, int(to[0])}}, "ibweave.view.marks.map(m => [m.a, m.b])")
}

// measured is a mesh with groups, choices, a bound, and a counter.
func measured(t *testing.T) *Input {
	t.Helper()
	in := *withChoices(t, compiled(t, fabrictest.Grid(t, 1, false, 4, 3), "xy", compile.Options{Groups: withGroups}), 9)
	found := short.Must(bound.Find(context.Background(), in.Fabric, bound.Options{Load: in.Result.GreatestLoad()}))(t)
	in.Result.CompareBounds(found.List()...)
	bytes := make([]float64, in.Fabric.NumPorts())
	for p := range bytes {
		bytes[p] = float64(p)
	}
	in.Counters = []Counter{{Name: "job a", Unit: "bytes", Values: bytes}}
	return &in
}

// TestBrowserMeasures: the page has the measures of pictures, with the same values, and begins with
// the one that is asked for.
func TestBrowserMeasures(t *testing.T) {
	in := measured(t)
	in.Cables = "bound"
	s := short.Must(newScene(context.Background(), in))(t)
	p := open(t, in)
	want(p, "bound, % of the bound", "document.getElementById('colour').selectedOptions[0].textContent")
	type values struct {
		Name, Unit string
		Values     []float64
		Max, Mean  float64
	}
	got := eval[[]values](p, "ibweave.data.measures.map(m => ({Name: m.name, Unit: m.unit, Values: [...m.values], Max: m.max, Mean: m.mean}))")
	wanted := s.measures()
	var names []string
	for i, m := range wanted {
		names = append(names, m.Name)
		want := values{m.Name, m.Unit, m.Values, m.max, m.mean}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })
		if diff := cmp.Diff(want, got[i], near); diff != "" {
			t.Errorf("%s: %s", m.Name, diff)
		}
	}
	if !slices.Equal(names, []string{"routes", "bound", "trees", "choices", "job a"}) || len(got) != 5 {
		t.Errorf("measures %q, the page has %d", names, len(got))
	}
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#colour"), "t")))
	want(p, "trees", "ibweave.measure()")
}

// TestMeasures counts again what cables show: trees over a cable, choices of a switch, and the load
// of the busiest cable against the bound.
func TestMeasures(t *testing.T) {
	in := measured(t)
	f := in.Fabric
	s := short.Must(newScene(context.Background(), in))(t)
	by := map[string]measure{}
	for _, m := range s.measures() {
		by[m.Name] = m
	}
	b := in.Result.Bound
	if got, want := by["bound"].max, 100*b.Load/b.Bounds[0].Least; math.Abs(got-want) > 1e-9 {
		t.Errorf("the busiest cable has %g %% of the bound, want %g", got, want)
	}
	some := 0
	for p := range fabric.PortID(f.NumPorts()) {
		trees, choices := 0.0, 0.0
		for _, g := range in.groups() {
			if slices.Contains(in.Multicast.Tables.Ports(g.MLID), p) {
				trees++
			}
		}
		if sw := f.Owner(p); f.IsSwitch(sw) {
			for lid, end := range f.LIDPorts() {
				if end == fabric.NoPort {
					continue
				}
				one, other := in.Adaptive.Choices(0, sw, fabric.LID(lid)), in.Adaptive.Choices(1, sw, fabric.LID(lid))
				if one.Len() > 1 && one.Has(f.Num(p)) || other.Len() > 1 && other.Has(f.Num(p)) {
					choices++
				}
			}
		}
		if by["trees"].Values[p] != trees || by["choices"].Values[p] != choices {
			t.Errorf("%s: %g trees and %g choices, want %g and %g", f.PortName(p), by["trees"].Values[p], by["choices"].Values[p], trees, choices)
		}
		if trees > 0 && choices > 0 {
			some++
		}
	}
	if some < 5 {
		t.Errorf("%d ports with trees and choices: too few to tell", some)
	}
	view := short.Must(ParseView("fabric"))(t)
	in.Cables = "choices"
	picture, err := Draw(context.Background(), in, view)
	if err != nil || picture.shows.Name != "choices" {
		t.Error(err)
	}
	in.Cables = "absent"
	_, err = Draw(context.Background(), in, view)
	none := new(RequestError)
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "want one of routes, bound, trees, choices, job a") {
		t.Error(err)
	}
	if err := Write(context.Background(), new(bytes.Buffer), in); !errors.As(err, &none) {
		t.Error(err)
	}
}
