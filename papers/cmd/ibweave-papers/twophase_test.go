package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/built"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/mft/groupfile"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/sminterface/rehearse"
)

// wires adds to a set the links between stages that a packet from one processor to another
// takes through a banyan network of n stages: it enters by the perfect shuffle, leaves the
// element of stage i by bit i of the address, and goes on by the butterfly. It is written from
// the paper and shares no code with the program.
func wires(n, from, to int, set map[[2]int]bool) {
	link := from << 1
	if link >= 1<<n {
		link = link - 1<<n + 1
	}
	for stage := n - 1; stage > 0; stage-- {
		if link%2 == 1 {
			link--
		}
		if to&(1<<stage) != 0 {
			link++
		}
		set[[2]int{stage, link}] = true
		low, high := link%2, link/(1<<stage)%2
		link += (high - low) + (low-high)*(1<<stage)
	}
	if link/2 != to/2 {
		panic("the last element is not that of the destination")
	}
}

// scheduleTwoPhase runs the command for messages from processors to others, and returns its
// summary, the schedule and the groups of the first phase.
func scheduleTwoPhase(t *testing.T, tables string, from, to []int, flags ...string) (links int, schedule, phaseOne string) {
	t.Helper()
	dir := t.TempDir()
	list := func(addresses []int) string {
		var names []string
		for _, a := range addresses {
			names = append(names, fmt.Sprintf("\"host %d\"", a))
		}
		return strings.Join(names, ", ")
	}
	text := fmt.Sprintf("groups:\n  - {name: g, senders: [%s], receivers: [%s]}\n", list(from), list(to))
	short.Check(t, os.WriteFile(filepath.Join(dir, "groups.yaml"), []byte(text), 0o600))
	args := []string{"schedule", tables, "-g", dir + "/groups.yaml", "--method", "two-phase", "-o", dir + "/schedule", "--phase-1", dir + "/one.yaml", "--format", "json"}
	status, out, errs := call(append(args, flags...)...)
	var d struct {
		Links   int
		Verdict string
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != cli.Clean || d.Verdict != "clean" {
		t.Fatalf("%v to %v: exit status %d, %v, %s%s", from, to, status, err, out, errs)
	}
	s := short.Must(os.ReadFile(dir + "/schedule"))(t)
	one := short.Must(os.ReadFile(dir + "/one.yaml"))(t)
	return d.Links, string(s), string(one)
}

var regionSend = regexp.MustCompile(`(?m)^(\d+) send \* > (\d+)(?:-(\d+))? 1$`)

// TestTwoPhaseCrossings has 50 random sets of destinations on networks of 3 to 5 stages: the
// region and the sends are those of the paper, and the links that the command counts are those
// that the packets of both phases cross.
func TestTwoPhaseCrossings(t *testing.T) {
	sets := short.Of(50, 12)
	for n := 3; n <= 5; n++ {
		dir := filepath.Join(t.TempDir(), "tables")
		compileBanyan(t, n, dir)
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		for trial := n - 3; trial < sets; trial += 3 {
			size := 1 << n
			perm := rng.Perm(size)
			f := 1 + rng.IntN(size-1)
			source, to := perm[0], slices.Sorted(slices.Values(perm[1:f+1]))
			start := rng.IntN(size - f + 1)
			var flags []string
			if trial%2 == 0 {
				flags = []string{"--start", fmt.Sprint(start)}
			}
			links, text, _ := scheduleTwoPhase(t, dir, []int{source}, to, flags...)
			m := regionSend.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("no send to a region:\n%s", text)
			}
			var at, first, last int
			fmt.Sscan(m[1]+" "+m[2]+" "+m[2], &at, &first, &last)
			fmt.Sscan(m[3], &last)
			if trial%2 == 1 {
				start = first
			}
			region := to[f-1]-to[0] == f-1
			if region {
				start = to[0]
			}
			if at != source || first != start || last != start+f-1 || last >= size {
				t.Fatalf("%d to %v: %s, want the region from %d on", source, to, m[0], start)
			}
			crossed := map[[2]int]bool{}
			for a := first; a <= last; a++ {
				wires(n, source, a, crossed)
			}
			want := len(crossed)
			for l, d := range to {
				line := fmt.Sprintf("\n%d 1 %d > %d 2\n", start+l, source, d)
				if strings.Contains(text, line) == region {
					t.Fatalf("%d to %v: wrong sends of phase 2:\n%s", source, to, text)
				}
				if !region {
					one := map[[2]int]bool{}
					wires(n, start+l, d, one)
					want += len(one)
				}
			}
			short.Equal(t, links, want, n, "stages", source, "to", to, "region from", start, "on", "links")
		}
	}
}

// compileBanyan writes tables for a wrap-around network of n stages.
func compileBanyan(t *testing.T, n int, dir string) {
	t.Helper()
	if _, err := outdir.Write(t.Context(), dir, runBanyan(t, n, nil), outdir.Options{InstallDir: dir}); err != nil {
		t.Fatal(err)
	}
}

// runBanyan compiles a wrap-around network of n stages with groups.
func runBanyan(t *testing.T, n int, groups func(*fabric.Fabric) ([]mft.Group, error)) *compile.Result {
	t.Helper()
	f := short.Must(banyan.Banyan(n, true))(t)
	e := short.Must(compile.EngineByName("banyan"))(t)
	return short.Must(compile.Run(t.Context(), f, e, compile.Options{Groups: groups}))(t)
}

// TestTwoPhaseOnOpenSM is golden G-N3 by the command: 5 sends to 4-8, which send to 0, 3, 6, 11
// and 13, over 22 links. The group of the first phase is what compile takes and OpenSM with the
// plugin loads into ibsim's switches.
func TestTwoPhaseOnOpenSM(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tables")
	compileBanyan(t, 4, dir)
	links, text, phaseOne := scheduleTwoPhase(t, dir, []int{5}, []int{0, 3, 6, 11, 13}, "--start", "4")
	_, sends, _ := strings.Cut(text, "senders 5\n")
	if want := "4 1 5 > 0 2\n5 send * > 4-8 1\n5 1 5 > 3 2\n6 1 5 > 6 2\n7 1 5 > 11 2\n8 1 5 > 13 2\n"; links != 22 || sends != want {
		t.Errorf("%d links, want 22; sends\n%swant\n%s", links, sends, want)
	}
	// Two originators to all others, of which each has a region of its own or both have one.
	if _, _, one := scheduleTwoPhase(t, dir, []int{5, 9}, []int{0, 3, 6}, "--start", "4"); strings.Count(one, "name: region 4-7\n") != 1 || strings.Count(one, "- 0x") != 4+2 {
		t.Errorf("two originators have the groups\n%s", one)
	}
	r := runBanyan(t, 4, func(f *fabric.Fabric) ([]mft.Group, error) {
		return groupfile.Parse("one.yaml", []byte(phaseOne), f)
	})
	w := short.Must(banyan.Detect(r.Routing.Fabric))(t)
	tree := &r.Plan.Trees[0]
	if len(r.Plan.Trees) != 1 || !slices.Equal(tree.Receivers, w.Inputs[4:9]) || !slices.Equal(tree.Senders, w.Outputs[5:6]) {
		t.Fatalf("group %+v", tree)
	}
	crossed := map[[2]int]bool{}
	for a := 4; a <= 8; a++ {
		wires(4, 5, a, crossed)
	}
	for _, p := range r.Plan.Tables.Ports(tree.MLID) {
		stage, element := w.Position(r.Routing.Fabric.Owner(p))
		key := [2]int{stage, element*2 + int(r.Routing.Fabric.Num(p)) - 3}
		if stage > 0 && !crossed[key] {
			t.Errorf("the masks have link %d of stage %d, which no copy takes", key[1], stage)
		}
		delete(crossed, key)
	}
	if len(crossed) > 0 {
		t.Errorf("the masks lack %v", crossed)
	}
	if testing.Short() {
		return
	}
	t.Chdir("../../..") // to the module that has the plugin
	plugin := short.Must(built.Program(rehearse.LibraryName, "./cmd/ibweave-opensm", "-tags", "opensm", "-buildmode=c-shared", "-ldflags=-w"))(t)
	got, err := rehearse.RunPlugin(t.Context(), r.Routing.Fabric, r.Routing.Tables, rehearse.PluginOptions{
		Library: plugin, Engine: "banyan", MFT: r.Plan.Tables, Trees: r.Plan.Trees, Options: rehearse.Options{SL2VL: r.Routing.SL2VL},
		Config: func(groups string) ([]byte, error) { return outdir.PluginConfig(nil, groups) },
	})
	if err != nil || !got.Equal() || got.Multicast.Groups != 1 || got.Multicast.Equal != 1 {
		t.Errorf("OpenSM has other tables: %v, %+v", err, got)
	}
}
