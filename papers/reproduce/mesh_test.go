package reproduce

import (
	"math"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// TestMesh runs both versions of the mesh paper quickly, and has the times of G-X9
// within bands, its outcome of the claims, and G-X10.
func TestMesh(t *testing.T) {
	names := []string{"zhou2010", "zhou-conf"}
	few := testing.Short() || !short.All()
	if few { // the figures of two cases, without the verdicts
		names = short.Of([]string{"zhou2010/x19-routing-delay", "zhou2010/x19-buffers", "zhou-conf/fig12"}, nil)
		for _, c := range journalCases[:2] {
			for _, name := range c.figures {
				names = append(names, "zhou2010/"+name)
			}
		}
	}
	work := short.Must(Find(names))(t)
	list := short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 1}))(t)
	figures := map[string]map[string]*Figure{}
	for i, f := range list {
		paper := work[i].Paper.ID
		if figures[paper] == nil {
			figures[paper] = map[string]*Figure{}
		}
		figures[paper][work[i].Name] = f
	}
	journal := figures["zhou2010"]

	t.Run("G-X9", func(t *testing.T) {
		// Another simulator's, in ns, whose sources and groups are not known.
		for _, tt := range []struct {
			c     int // of journalCases
			bytes float64
			band  float64
			want  [5]float64 // unicast on 1, 2, 4 VLs, multicast on 1, 4
		}{
			{0, 32, 0.07, [5]float64{27468, 15468, 15468, 2668, 2668}},
			{0, 8192, 0.02, [5]float64{3324108, 3312108, 3312108, 35308, 35308}},
			{1, 32, 0.05, [5]float64{65770, 35290, 35290, 2778, 2778}},
			{1, 8192, 0.02, [5]float64{8388970, 8358490, 8358490, 35418, 35418}},
			{2, 32, 0.12, [5]float64{187594, 89314, 77194, 25076, 14896}},
			{2, 8192, 0.12, [5]float64{25124512, 21147320, 17864540, 3870294, 3539334}},
			{3, 32, 0.12, [5]float64{463130, 240102, 187658, 25164, 15362}},
			{3, 8192, 0.12, [5]float64{61428974, 52714254, 47026610, 4002386, 3572122}},
			{5, 32, 0.15, [5]float64{956710, 485828, 367516, 61542, 39328}},
			{5, 8192, 0.15, [5]float64{121742386, 110065184, 88713036, 9251696, 9733406}},
		}[:short.Of(short.Usual(10, 4), 4)] {
			c := journalCases[tt.c]
			for i, curve := range []struct {
				unicast bool
				lanes
			}{{true, oneVL}, {true, twoBySL}, {true, fourBySL}, {false, oneVL}, {false, fourBySL}} {
				got := 1000 * c.result(journal, curve.unicast, curve.lanes, tt.bytes).Y
				if off := got/tt.want[i] - 1; math.Abs(off) > tt.band {
					t.Errorf("%s, %v bytes, %s: %.0f ns is %+.1f %% off %.0f", c.short(), tt.bytes,
						curveOf(curve.unicast, curve.lanes), got, 100*off, tt.want[i])
				}
			}
		}
		if few {
			return
		}
		order := settingNamed("unicast-order")
		got := 1000 * order.in(journal, panelOf([2]int{meshHosts, meshHosts}, 32), true, oneVL, 3).Y
		if off := got/487582 - 1; math.Abs(off) > 0.1 {
			t.Errorf("all sources in random order: %.0f ns is %+.1f %% off 487582", got, 100*off)
		}
	})

	if few {
		return
	}
	t.Run("verdicts", func(t *testing.T) {
		for _, tt := range []struct {
			paper *Paper
			want  string
		}{
			{&zhou2010, `
X8: holds
X7: holds as adaptive negative-first
X2: holds as x*n + y + 1
X6: holds as towards the destination's y in cases 3 and 4
X9: holds as with the host's port at each member
X13: fails
X10: holds as with virtual cut-through and copies that leave one by one
X22-1: holds
X22-2a one source: holds
X22-2a more sources: fails
X22-2b: holds as time saved, not as a ratio
X22-2c: holds
X22-3a unicast, one source: holds as from 1 VL to 2, with buffers of one packet
X22-3a unicast, more sources: holds
X22-3a multicast, one source: fails
X22-3a multicast, more sources: holds as up to 32 bytes
X22-3a most: holds
X22-3b unicast: holds
X22-3b multicast, one source: fails
X22-3b multicast, more sources: holds as up to 32 bytes
X22-3b large unicast, one source: holds
X22-3b large unicast, more sources: fails
X22-3b large multicast, more sources: holds
X17: holds as configurations of one virtual lane
X22-4 slower: holds
X22-4 similar: holds
X22-5: holds as with buffers of two packets
X19: holds
X19 order: not decidable
`},
			{&zhouConference, `
X8: holds
X2: holds as x*n + y + 1
X6: holds as towards the destination's y in cases 3 and 4
X9: holds as with the host's port at each member
X22-1: holds
X22-2a one source: holds
X22-2a more sources: fails
X22-2b: holds as time saved, not as a ratio
X22-2c: holds
X22-3a unicast, one source: holds as from 1 VL to 2, with buffers of one packet
X22-3a unicast, more sources: holds
X22-3b unicast: holds
X22-3b multicast, one source: fails
X22-3b multicast, more sources: holds as up to 32 bytes
X22-3b large unicast, one source: holds
X22-3b large unicast, more sources: fails
X22-3b large multicast, more sources: holds
X17: holds as configurations of one virtual lane
X22-4 slower: holds
X22-4 similar: not decidable
`},
		} {
			var got strings.Builder
			got.WriteByte('\n')
			for _, j := range tt.paper.Judge(figures[tt.paper.ID]) {
				got.WriteString(j.Spec + ": " + j.Finding.String() + "\n")
			}
			short.Diff(t, got.String(), tt.want, tt.paper.ID)
		}
	})

	// The three cases of the conference version are among those of the journal's.
	t.Run("versions agree", func(t *testing.T) {
		for i, k := range []int{1, 2, 5} {
			for n, name := range conferenceCases[i].figures {
				a, b := figures["zhou-conf"][name], journal[journalCases[k].figures[n]]
				short.Diff(t, b.Panels, a.Panels, a.ID, b.ID)
			}
		}
	})
}

// TestMeshWorkers has the same figure on any number of workers.
func TestMeshWorkers(t *testing.T) {
	work := short.Must(Find([]string{"zhou2010/fig18"}))(t)
	var want []*Figure
	for _, workers := range []int{1, 3} {
		got := short.Must(Run(t.Context(), work, Options{Quick: true, Seed: 7, Workers: workers}))(t)
		if want == nil {
			want = got
		}
		short.Diff(t, got, want, workers, "workers")
	}
}

// TestMeshLayout has a full run measure the parameters, curves and sizes that the committed figures have.
func TestMeshLayout(t *testing.T) {
	for paper, cases := range map[*Paper][]meshCase{&zhou2010: journalCases, &zhouConference: conferenceCases} {
		figures := pageData(t, paper)[0]
		for _, c := range cases {
			for i, name := range c.figures {
				configs, _ := configurations(i)
				f, _ := layMesh(&c, configs, false, 1)
				short.Diff(t, f.Parameters, figures[name].Parameters, name)
				for k, p := range f.Panels {
					for n := range p.Curves {
						was := figures[name].Panels[k].Curves[n]
						short.MustEqual(t, p.Curves[n].Name, was.Name, name, k)
						short.MustEqual(t, len(p.Curves[n].Points), len(was.Points), name, k, was.Name)
						for x, at := range was.Points {
							short.Equal(t, p.Curves[n].Points[x].X, at.X, name, k, was.Name)
						}
					}
				}
			}
		}
	}
}
