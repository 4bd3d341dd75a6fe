package page

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

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
	var p *tab
	if *largeFlag != "" {
		p = openFile(t, *largeFlag, "", nil)
	} else {
		p = open(t, screened(t))
	}
	file := strings.TrimSuffix(filepath.Base(*largeFlag), ".html")
	like := func(what string) {
		_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: what}},
		})
		p.must(err)
	}
	defer like("")
	names := eval[[]string](p, "%s()", show)
	seen := map[string]bool{}
	for _, scheme := range short.Of([]string{"light", "dark"}, []string{"dark"}) {
		like(scheme)
		for _, size := range short.Of([][2]int64{{400, 800}, {900, 700}, {1600, 900}, {2560, 1440}}, [][2]int64{{400, 800}}) {
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
					p.must(os.WriteFile(filepath.Join(*screensFlag, fmt.Sprintf("%s-%s-%d-%s.png", file, view, size[0], scheme)), picture, 0o644))
				}
			}
		}
	}
	if *largeFlag == "" && len(seen) < len(names)-3 { // one state, no compiler
		t.Errorf("the page has %d of %d views", len(seen), len(names))
	}
}
