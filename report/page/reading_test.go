package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

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
