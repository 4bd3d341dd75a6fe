package page

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
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
