package reproduce

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// TestCalls has the figures that are made by models equal to what the calls that they print give:
// panels one after another, or rows among those of an exhibit.
func TestCalls(t *testing.T) {
	made := short.Must(madeExhibits())(t)
	for _, id := range []string{"min/fig5", "min/whole", "gerla1996/cut-trees", "gerla1996/latency"}[:short.Of(4, 1)] {
		work := short.Must(Find([]string{id}))(t)
		made[id] = short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)[0]
	}
	calls := 0
	for id, f := range made {
		panels := 0
		for _, line := range f.Calls {
			calls++
			line, ok := strings.CutPrefix(line, "ibweave-papers model ")
			if !ok {
				t.Fatal(line)
			}
			if strings.Contains(line, "'") { // a shell's word
				continue
			}
			var one *Figure
			onLab(t, func(lab *Lab) (err error) {
				one, err = callModel(lab, line)
				return err
			})
			for _, r := range one.Rows {
				if !slices.ContainsFunc(f.Rows, func(x Row) bool { return strings.HasSuffix(x.What, r.What) && x.Computed == r.Computed }) {
					t.Errorf("%s: no row %q, %s, of %s", id, r.What, r.Computed, line)
				}
			}
			if f.Panels == nil {
				continue
			}
			for i := range one.Panels {
				one.Panels[i].Title = f.Panels[panels+i].Title
			}
			whole := *f
			whole.Panels = f.Panels[panels : panels+len(one.Panels)]
			panels += len(one.Panels)
			var a, b bytes.Buffer
			if one.endCurves(); whole.CSV(&a) != nil || one.CSV(&b) != nil || a.String() != b.String() {
				t.Errorf("%s: %s gives\n%s\nwant\n%s", id, line, &b, &a)
			}
		}
		short.Equal(t, panels, len(f.Panels), id, "calls give", "panels")
	}
	if calls < 8 {
		t.Errorf("%d calls", calls)
	}
	// Links out of stages but the last one: golden G-N3 has 22 of them, 7 in phase 1 and three for
	// each of five sends. A cube of the eight nodes 1xxx has 1+2+4 in phase 1, of x10x 2+2+2. Two
	// blocks, the region 010x and two sends, have three each.
	for line, want := range map[string]string{
		"multicast --start 4":                          "22",
		"multicast --header cube --start 8":            "22",
		"multicast --header cube --to 4,5,12,13":       "6",
		"multicast --to 2,3,9 --start 4 --blocks":      "9",
		"multicast --to 4,5,6,7,8 --header region":     "7",
		"multicast --stages 3 --source 0 --to 0,1,2,3": "3",
	} {
		onLab(t, func(lab *Lab) error {
			f, err := callModel(lab, line)
			if err == nil && f.Rows[len(f.Rows)-1].Computed != want {
				t.Errorf("%s: %+v, want %s links", line, f.Rows, want)
			}
			return err
		})
	}
	for line, want := range map[string]string{
		"min --x m":                         "want load, stages or fanout",
		"min --count all":                   "want parts, whole or final",
		"min --start first":                 "want one of",
		"copy-rates --fanout 1000":          "fanout 1000",
		"worms":                             "want --worm, --threes or --random",
		"worms --worm 1-2":                  "want SOURCE:FIRST-LAST",
		"worms --take both --threes":        "want one of",
		"worms --lower-first 1 --threes":    "want STAGE:ELEMENT",
		"worms --random 17":                 "want 1 to the 16 processors",
		"multicast --header list":           "want region or cube",
		"multicast --to 99":                 "want 0 to 15",
		"multicast --header cube --start 3": "a multiple of their number",
		"lan --network ring":                "want torus, mesh, shufflenet or myrinet4",
		"lan --scheme cicuit":               "want circuit, tree",
		"lan --measure delay":               "want latency, carried",
		"lan --measure links,latency":       "want links last",
		"lan --routes dor":                  "want up-down, tree or xy",
		"lan --ids lid":                     "want random or place",
		"lan --members 99":                  "the 64 hosts",
		"testbed --senders 9":               "1 to the 8 hosts",
		"testbed --measure rate":            "want received, lost or in-all",
		"switches --scheme wait":            "want idle, idle-tree, interrupt or flush",
		"switches --members 16":             "all hosts but the root's",
		"tree-header --tree 1(2":            "is not closed",
		"tree-header --tree x":              "ports from 0 to 254",
		"tree-header --header 01":           "no pointer",
	} {
		onLab(t, func(lab *Lab) error {
			if _, err := callModel(lab, line); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", line, err, want)
			}
			return nil
		})
	}
}
