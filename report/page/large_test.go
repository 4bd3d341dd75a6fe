package page

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

var largeFlag = flag.String("large", "", "FILE that ibweave report wrote, for TestBrowserFrames and TestBrowserScreens")

// frames is what a page did while it was moved.
type frames struct {
	First      float64   // when the first picture was there, in ms
	Frames     []float64 // in ms, while panning
	Zooming    []float64
	Tasks      []float64 // long ones, in ms, while panning or zooming
	Pictures   int
	Sizes      []float64 // of the steps of zoom
	LongestMap float64   // frame of the heat map, in ms
}

// move pans and zooms frame by frame, the way a pointer would, over the fabric and its heat map.
//
//go:embed testdata/move.js
var move string

// TestBrowserFrames pans and zooms, and wants a pan to move the picture that is there. It logs how
// long the first picture, frames and tasks take.
func TestBrowserFrames(t *testing.T) {
	var p *tab
	if *largeFlag != "" {
		p = openFile(t, *largeFlag, "", nil)
	} else {
		p = open(t, compiled(t, fabrictest.FatTree(t, short.Of(12, 8), 3), "updn", compile.Options{}))
	}
	r := eval[frames](p, move, short.Of(20, 10))
	slices.Sort(r.Frames)
	slices.Sort(r.Zooming)
	at := func(list []float64, share float64) float64 { return list[int(math.Ceil(share*float64(len(list))))-1] }
	longest := 0.0
	for _, task := range r.Tasks {
		longest = max(longest, task)
	}
	t.Logf("first picture after %.0f ms; panning %d frames: median %.1f ms, 95 %% below %.1f ms, longest %.1f ms; zooming: 95 %% below %.1f ms; %d long tasks, the longest %.0f ms; longest frame of the heat map %.1f ms; %d pictures",
		r.First, len(r.Frames), at(r.Frames, 0.5), at(r.Frames, 0.95), at(r.Frames, 1), at(r.Zooming, 0.95), len(r.Tasks), longest, r.LongestMap, r.Pictures)
	if moved := len(r.Frames) + len(r.Zooming); r.Pictures > moved/2 {
		t.Errorf("%d pictures of the fabric for %d frames: a pan moves the one that is there", r.Pictures, moved)
	}
}

// box is a group as it is drawn.
type box struct {
	Name   string
	Closed bool
	X, Y   float64
}

// TestBrowserBoxes: pods close and open, by the list, clicks and keys, and nodes in a closed one are not
// there to be clicked on.
func TestBrowserBoxes(t *testing.T) {
	in := *compiled(t, fabrictest.FatTree(t, 4, 3), "updn", compile.Options{})
	rack := Group{Name: "rack <b>1</b>"}
	p0 := &tab{T: t, in: &in}
	for _, host := range []string{"host 0 leaf 0 pod 0", "host 1 leaf 0 pod 0"} {
		rack.Nodes = append(rack.Nodes, p0.node(host))
	}
	in.Groupings = []Grouping{{Name: "racks", Groups: []Group{rack}}}
	p := open(t, &in)
	closed := func() (names []string) {
		t.Helper()
		eval[bool](p, "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
		for _, b := range eval[[]box](p, "ibweave.boxes()") {
			if b.Closed {
				names = append(names, b.Name)
			}
		}
		return names
	}
	if got := closed(); got != nil {
		t.Errorf("closed in a small fabric: %q", got)
	}
	choose := func(words string) {
		t.Helper()
		p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#boxes"), words)))
	}
	choose("pods")
	short.Equal(t, strings.Join(closed(), ", "), "pod 0, pod 1, pod 2, pod 3, core 0, core 1", "closed")
	clickBox := func(name string) {
		t.Helper()
		for _, b := range eval[[]box](p, "ibweave.boxes()") {
			if b.Name == name {
				stage := eval[[]float64](p, "(b => [b.left, b.top])(document.getElementById('fabric').getBoundingClientRect())")
				p.must(chromedp.Do(p.ctx, chromedp.MouseClickXY(stage[0]+b.X, stage[1]+b.Y)))
			}
		}
	}
	clickBox("pod 1")
	if got := closed(); slices.Contains(got, "pod 1") || len(got) != 5 {
		t.Errorf("closed after a click on pod 1: %q", got)
	}
	leaf := p.node("leaf 1 pod 1")
	p.clickNode(leaf)
	want(p, "leaf 1 pod 1", "document.querySelector('#panel-node h2').textContent")
	// A search opens the pod of what is found, c closes it, Enter opens it.
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#find"), "leaf 0 pod 3"+kb.Enter)))
	if got := closed(); slices.Contains(got, "pod 3") {
		t.Errorf("closed after a search in pod 3: %q", got)
	}
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys("c")
	if got := closed(); !slices.Contains(got, "pod 3") {
		t.Errorf("closed after c in pod 3: %q", got)
	}
	want(p, "pod 3, 4 switches, 4 hosts", "document.getElementById('live').textContent")
	p.keys(kb.Enter)
	if got := closed(); slices.Contains(got, "pod 3") {
		t.Errorf("closed after Enter on pod 3: %q", got)
	}
	// A rack has the leaf whose hosts are all in it; its name is text.
	choose("racks")
	short.Equal(t, strings.Join(closed(), ", "), rack.Name, "closed")
	want(p, []bool{true, false}, "[%d, %d].map(n => ibweave.hides(n))", p.node("leaf 0 pod 0"), p.node("leaf 1 pod 0"))
	choose(kb.Home)
	if got := closed(); got != nil {
		t.Errorf("closed without boxes: %q", got)
	}
}

// TestBrowserHeat: the map is that of the tables, by the slow way, and a cell shows a path.
func TestBrowserHeat(t *testing.T) {
	for name, in := range inputs(t) {
		if in.Tables == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := short.Must(newScene(context.Background(), in))(t)
			h := short.Must(s.heat(context.Background()))(t)
			if h == nil { // a map has two leaves at least
				if n := switchesWithHosts(in.Fabric); n > 1 {
					t.Fatalf("no map of %d leaves", n)
				}
				return
			}
			for i, from := range h.leaves {
				for j, to := range h.leaves {
					hops, arrived, lids, load, paths := 0, 0, 0, int64(0), map[string]bool{}
					for _, port := range in.Fabric.HostsOn(to) {
						for lid := range in.Fabric.LIDs(port) {
							lids++
							n, most, way := slowWay(s, from, lid, port)
							if n == 0 {
								continue
							}
							arrived++
							hops += n
							load = max(load, most)
							paths[way] = true
						}
					}
					mean := 0
					if arrived > 0 {
						mean = (10*hops + arrived/2) / arrived
					}
					at := i*len(h.leaves) + j
					if got, want := []int{int(h.hops[at]), int(h.load[at]), int(h.paths[at]), int(h.lost[at]), int(h.lids[j])}, []int{mean, int(load), len(paths), lids - arrived, lids}; !slices.Equal(got, want) {
						t.Fatalf("%s to %s: hops, load, paths, lost, LIDs %v, want %v", in.Fabric.Name(from), in.Fabric.Name(to), got, want)
					}
				}
			}
		})
	}
	p := open(t, compiled(t, fabrictest.FatTree(t, 8, 2), "updn", compile.Options{}))
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "heat map: div")))
	short.Contains(t, p.text("#legend"), "different paths")
	p.must(chromedp.Do(p.ctx, chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys(kb.ArrowRight + kb.ArrowRight + kb.ArrowRight)
	want(p, "leaf 0 → leaf 2, 28 routes on the busiest link, 3.0 switches on a path, 4 different paths", "document.getElementById('live').textContent")
	p.keys(kb.Enter)
	path := p.in.Path(p.port(p.node("host 0 leaf 0")), p.in.Fabric.LID(p.port(p.node("host 0 leaf 2"))))
	want(p, outs(path), "ibweave.shown()")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "fabric")))
	short.Contains(t, p.text("#legend"), "routes on a link")
}

// TestHeatLoss: a pair of leaves of which a single LID is lost is dark.
func TestHeatLoss(t *testing.T) {
	in := compiled(t, fabrictest.FatTree(t, 8, 2), "updn", compile.Options{})
	p := &tab{T: t, in: in}
	lid := in.Fabric.LID(p.port(p.node("host 0 leaf 2")))
	in.Tables.Row(p.node("leaf 0"))[lid] = fabric.NoPath
	p = open(t, in)
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "heat map: hops"), chromedp.Focus(chromedp.CSS("#fabric"))))
	const inked = "(d => [0, 4].map(i => '#' + [...d.slice(i, i + 3)].map(v => v.toString(16).padStart(2, '0')).join('') === ibweave.view.colours.ink))(ibweave.view.heat.sizes[0].getContext('2d').getImageData(1, 0, 2, 1).data)"
	want(p, []bool{false, true}, "%s", inked)
	p.keys(kb.ArrowRight + kb.ArrowRight + kb.ArrowRight)
	want(p, "leaf 0 → leaf 2, 1 of 4 LIDs lost, 28 routes on the busiest link, 3.0 switches on a path, 3 different paths", "document.getElementById('live').textContent")
}

// TestBrowserPorts: a cell of the map shows the path between the ports of its leaves, and lists give the
// paths of the hosts' other ports.
func TestBrowserPorts(t *testing.T) {
	// Two rails: each of four hosts has a port on leaf 0 or 1, and one on leaf 2 or 3.
	b := &fabric.Builder{}
	add := func(guid fabric.GUID, kind fabric.NodeType, ports fabric.PortNum, name string) int {
		return short.Must(b.AddNode(fabric.Node{GUID: guid, Type: kind, NumPorts: ports, Description: name}))(t)
	}
	link := func(a int, p fabric.PortNum, c int, q fabric.PortNum) {
		short.Check(t, b.Connect(a, p, c, q, fabric.Link{Width: 4, Speed: fabric.EDR}))
	}
	spine := add(1, fabric.Switch, 4, "spine")
	var leaves [4]int
	for i := range leaves {
		leaves[i] = add(fabric.GUID(2+i), fabric.Switch, 4, fmt.Sprintf("leaf %d", i))
		link(leaves[i], 4, spine, fabric.PortNum(i+1))
	}
	for h := range 4 {
		host := add(fabric.GUID(100+10*h), fabric.CA, 2, fmt.Sprintf("host %d", h))
		for rail := range 2 {
			link(host, fabric.PortNum(rail+1), leaves[2*rail+h/2], fabric.PortNum(h%2+1))
		}
	}
	f := short.Must(b.Build())(t)
	p := open(t, compiled(t, f, "updn", compile.Options{}))
	f = p.in.Fabric
	at := func(name string, num fabric.PortNum) fabric.PortID { return f.Port(p.node(name), num) }
	path := func(a, b fabric.PortID) []int { return outs(p.in.Path(a, f.LID(b))) }
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#mode"), "heat map: load"), chromedp.Focus(chromedp.CSS("#fabric"))))
	p.keys(kb.ArrowRight + kb.ArrowRight + kb.Enter) // from leaf 2, whose hosts are in no box, to leaf 3
	want(p, path(at("host 0", 2), at("host 2", 2)), "ibweave.shown()")
	want(p, []string{"from port 1, on leaf 0", "from port 2, on leaf 2"}, "[...document.querySelectorAll('#port option')].map(o => o.textContent)")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#port"), kb.Home)))
	want(p, path(at("host 0", 1), at("host 2", 2)), "ibweave.shown()")
	p.must(chromedp.Do(p.ctx, chromedp.SendKeys(chromedp.CSS("#lid"), kb.Home)))
	want(p, path(at("host 0", 1), at("host 2", 1)), "ibweave.shown()")
}

// switchesWithHosts counts the leaves.
func switchesWithHosts(f *fabric.Fabric) (n int) {
	for s := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(s)) > 0 {
			n++
		}
	}
	return n
}

// slowWay follows a packet from a switch: switches, the greatest load, and the ports in words.
func slowWay(s *scene, at fabric.NodeID, lid fabric.LID, port fabric.PortID) (hops int, load int64, way string) {
	f := s.Fabric
	for hops = 1; hops <= f.NumSwitches(); hops++ {
		num := s.Tables.Row(at)[lid]
		if num == 0 || num > f.Node(at).NumPorts || f.Peer(f.Port(at, num)) == fabric.NoPort {
			return 0, 0, ""
		}
		out := f.Port(at, num)
		if f.Peer(out) == port {
			return hops, load, way
		}
		if at = f.PeerSwitch(out); at == fabric.NoNode {
			return 0, 0, ""
		}
		load = max(load, s.routes[out])
		way += fmt.Sprint(out, " ")
	}
	return 0, 0, ""
}

var screensFlag = flag.String("screens", "", "folder that TestBrowserScreens writes pictures of all views to, as NAME-VIEW-WIDTH-SCHEME.png; with -large FILE of that page")

// show brings a page to a view, whose name follows it in parentheses, and says whether the page has it,
// and what is wrong there: more than the window, text that is cut, beyond its panel or on other text,
// and parts that cover each other. Without a name it lists its views.
//
//go:embed testdata/show.js
var show string

// screened is a fabric with what pages show: groups, choices, racks, a credit loop, faults and long names.
func screened(t *testing.T) *Input {
	t.Helper()
	f := fabrictest.Grid(t, 2, true, 4, 4)
	names := make(map[fabric.GUID]string)
	for n := range fabric.NodeID(f.NumNodes()) {
		names[f.Node(n).GUID] = fmt.Sprintf("row-b.data-centre-2.example.org %s QM9700;U%d", f.Node(n).Description, n)
	}
	in := *withChoices(t, compiled(t, f.WithNames(names), "minhop", compile.Options{Groups: withGroups}), 4)
	end := func(p fabric.PortID) verify.Endpoint {
		return verify.Endpoint{Node: in.Fabric.Node(in.Fabric.Owner(p)).GUID, Port: in.Fabric.Num(p)}
	}
	ports, _ := in.Fabric.SwitchLinks(5)
	result := *in.Result
	result.Findings = slices.Clone(result.Findings)
	in.Result = &result
	for i, rule := range []string{"missing-cable", "link-degraded"} {
		in.Result.Add(verify.Finding{Rule: rule, Severity: verify.Warning, Message: rule, Ports: []verify.Endpoint{end(ports[i]), end(in.Fabric.Peer(ports[i]))}})
	}
	hosts := in.Fabric.HostsOn(3)
	in.Groupings = []Grouping{{Name: "racks", Groups: []Group{{Name: "rack 17 in row B of the second data centre", Nodes: []fabric.NodeID{in.Fabric.Owner(hosts[0]), in.Fabric.Owner(hosts[1])}}}}}
	in.Title = strings.Repeat("a long title of a fabric ", 4)
	return &in
}

// TestBrowserScreens looks at every view from 400 to 2560 px, light and dark: nothing is cut, beyond an edge or
// on something else. With -screens DIR it writes pictures; with -large FILE of a page that report wrote.
func TestBrowserScreens(t *testing.T) {
	pages := map[string]func(*testing.T) *tab{
		"one state":  func(t *testing.T) *tab { return open(t, screened(t)) },
		"two states": func(t *testing.T) *tab { return open(t, twoStates(t)) },
	}
	if *largeFlag != "" {
		file := strings.TrimSuffix(filepath.Base(*largeFlag), ".html")
		pages = map[string]func(*testing.T) *tab{file: func(t *testing.T) *tab { return openFile(t, *largeFlag, "", nil) }}
	}
	seen := map[string]bool{}
	var names []string
	for page, open := range pages {
		t.Run(page, func(t *testing.T) {
			p := open(t)
			like := func(what string) {
				_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: what}},
				})
				p.must(err)
			}
			defer like("")
			names = eval[[]string](p, "%s()", show)
			for _, scheme := range short.Of([]string{"light", "dark"}, []string{"dark"}) {
				like(scheme)
				for _, size := range short.Of([][2]int64{{400, 800}, {900, 700}, {1000, 620}, {1600, 900}, {2560, 1440}}, [][2]int64{{400, 800}}) {
					p.must(chromedp.Do(p.ctx, chromedp.EmulateViewport(size[0], size[1])))
					for _, view := range names {
						got := eval[*struct {
							Bad   []string
							Names int
						}](p, "%s(%s)", show, quoted(view))
						if got == nil {
							continue
						}
						seen[view] = true
						for _, what := range got.Bad {
							t.Errorf("%s, %d px, %s: %s", view, size[0], scheme, what)
						}
						if *screensFlag != "" {
							picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
							p.must(err)
							p.must(os.WriteFile(filepath.Join(*screensFlag, fmt.Sprintf("%s-%s-%d-%s.png", page, view, size[0], scheme)), picture, 0o644))
						}
					}
				}
			}
		})
	}
	if *largeFlag == "" && len(seen) < len(names)-1 { // no compiler, to try changes
		t.Errorf("the page has %d of %d views", len(seen), len(names))
	}
}
