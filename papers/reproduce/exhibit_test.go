package reproduce

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/papers/drawing"
)

// madeExhibits are the exhibits of all papers, made once.
var madeExhibits = sync.OnceValues(func() (map[string]*Figure, error) {
	var work []Work
	for _, p := range Papers {
		for w := range p.works() {
			if w.Prints() {
				work = append(work, w)
			}
		}
	}
	figures, err := Run(context.Background(), work, Options{Quick: true, Seed: 1})
	made := map[string]*Figure{}
	for _, f := range figures {
		made[f.ID] = f
	}
	return made, err
})

// TestExhibits has the worked examples and theorems of the papers by the real code, and
// what becomes of them.
func TestExhibits(t *testing.T) {
	made := short.Must(madeExhibits())(t)
	want := map[string]string{
		"zhou2010 X8": "holds", "zhou2010 X7": "holds as adaptive negative-first", "zhou2010 X2": "holds as x*n + y + 1",
		"zhou2010 X6": "holds as towards the destination's y in cases 3 and 4", "zhou2010 X9": "holds as with the host's port at each member",
		"zhou2010 X13": "fails", "zhou2010 X10": "holds as with virtual cut-through and copies that leave one by one",
		"zhou-conf X8": "holds", "zhou-conf X2": "holds as x*n + y + 1",
		"zhou-conf X6": "holds as towards the destination's y in cases 3 and 4", "zhou-conf X9": "holds as with the host's port at each member",
		"gerla1996 M7": "holds", "gerla1996 M8": "holds as for one multicast at a time", "gerla1996 M14": "holds", "gerla1996 M16": "holds",
		"gerla1996 M1": "holds", "gerla1996 M15-ack": "holds", "gerla1996 M18": "holds", "gerla1996 M17-order": "holds",
		"gerla1996 M3": "holds as outside of meshes with the root in a corner", "gerla1996 M12": "holds as where the root is not in the corner of a mesh",
		"spam S12": "holds", "spam S11-1": "holds", "spam S11-2": "holds",
		"min N4": "holds", "min N7": "holds", "min N8": "holds", "min N10": "holds as with three requests at the two elements, not four",
		"min N11": "holds as for two worms, or with room for whole packets",
	}
	for _, p := range Papers {
		figures := map[string]*Figure{}
		for w := range p.works() {
			if f := made[w.ID()]; f != nil {
				figures[w.Name] = f
				var b bytes.Buffer
				if err := f.Text(&b); err != nil || len(f.Rows) == 0 || !strings.Contains(b.String(), f.Rows[0].What) {
					t.Errorf("%s: %v\n%s", f.ID, err, &b)
				}
			}
		}
		for _, j := range p.Judge(figures) {
			if j.Verdict == NotMeasured {
				continue
			}
			id := p.ID + " " + j.Spec
			short.Equal(t, j.Finding.String(), want[id], id, j.Measured)
			delete(want, id)
		}
	}
	if len(want) > 0 {
		t.Errorf("not judged: %v", want)
	}
	// Pictures of deadlocks have a cycle: each packet waits for what another one holds.
	for _, id := range []string{"zhou2010/deadlock", "gerla1996/deadlock", "gerla1996/path-deadlock", "min/deadlock", "min/theorem2"} {
		waits := 0
		for _, a := range made[id].Drawings[0].Arrows {
			if !a.Waits {
				continue
			}
			waits++
			if !slices.ContainsFunc(made[id].Drawings[0].Arrows, func(b drawing.Arrow) bool {
				return !b.Waits && b.From == a.From && b.To == a.To && b.Who != a.Who
			}) {
				t.Errorf("%s: nothing holds what %s waits for", id, a.Who)
			}
		}
		if waits < 2 {
			t.Errorf("%s: %d packets wait", id, waits)
		}
	}
}
