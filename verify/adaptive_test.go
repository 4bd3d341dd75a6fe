package verify_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var trials = flag.Int("choices", short.Usual(1000, 330), "random tables that are compared with a slow checker")

// TestAnyTables compares Check with a checker that follows every choice.
func TestAdaptiveAnyTables(t *testing.T) {
	kinds := map[string]int{}
	seeds := []int{1361, 584} // where some switches lack one of two PLFTs, and the second has the dependency that is tried
	for seed := range short.Of(*trials, 30) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 20))
		f := randomFabric(t, r, 2+r.IntN(5), r.IntN(6), 1+r.IntN(6))
		tables, opt := randomTables(f, r), randomLanes(f, r)
		got := short.Must(verify.CheckAdaptive(t.Context(), withTables(f, tables, opt), verify.Options{}))(t)
		s := newSlow(f, tables, opt)
		n := got.Adaptive
		compare := func(name string, slow, fast int64) {
			short.Equal(t, slow, fast, "seed", seed, name)
		}
		compare("dead ends", s.deadEnds, n.DeadEnds)
		compare("loops", s.loops, n.Loops)
		compare("management dead ends", s.mgmtDeadEnds, n.ManagementDeadEnds)
		compare("management loops", s.mgmtLoops, n.ManagementLoops)
		compare("dependencies", int64(s.all.size()), int64(n.Dependencies))
		compare("management credit loops", int64(s.all.components()), int64(n.ManagementCreditLoops))
		compare("management without escape", int64(s.allEscape.components()), int64(n.ManagementNoEscape))
		compare("credit loops", int64(s.unicast.components()), int64(n.CreditLoops))
		compare("without escape", int64(s.unicastEscape.components()), int64(n.NoEscape))
		checkCertificate(t, s, got.Certificate(), r)
		for i := range got.Findings {
			checkWitness(t, s, &got.Findings[i])
		}
		if t.Failed() {
			t.FailNow()
		}
		var v verify.Result
		v.AddAdaptive(got)
		kinds[v.Verdict]++
		for _, f := range got.Findings {
			kinds[f.Rule]++
		}
	}
	t.Log(kinds)
}

// checkWitness expects that packets can go from each channel of a witness to the next one, in a
// cycle except to a dead end, and that switches can choose them.
func checkWitness(t *testing.T, s *slow, x *verify.Finding) {
	t.Helper()
	dead := x.Rule == verify.AdaptiveDeadEnd || x.Rule == verify.ManagementAdaptiveDeadEnd
	for i, h := range x.Witness {
		n, _ := s.f.SwitchByGUID(h.Switch)
		chosen := h.Port == fabric.NoPath && dead
		for k, plft := range s.t.PLFTs {
			if h.LID <= plft.Ports.MaxLID() {
				choices := s.t.Choices(k, n, h.LID)
				chosen = chosen || h.LID != 0 && choices.Has(h.Port)
			}
		}
		if !chosen {
			t.Errorf("%s: no PLFT chooses hop %d of %v", x.Rule, i, x.Witness)
			return
		}
		if dead && i == len(x.Witness)-1 {
			return
		}
		next := x.Witness[(i+1)%len(x.Witness)]
		if to := s.f.PeerSwitch(s.f.Port(n, h.Port)); to == fabric.NoNode || s.f.Node(to).GUID != next.Switch {
			t.Errorf("%s: hop %d of %v does not lead to the next", x.Rule, i, x.Witness)
		}
	}
}

// checkCertificate expects a certificate where there is no credit loop of CA ports, that it
// holds, and that it does not if a number no longer climbs along some dependency.
func checkCertificate(t *testing.T, s *slow, c *verify.Certificate, r *rand.Rand) {
	t.Helper()
	if (c != nil) != (s.unicast.components() == 0) {
		t.Errorf("certificate %v, and %d credit loops", c, s.unicast.components())
	}
	if c == nil {
		return
	}
	in := &state.State{Fabric: s.f, Adaptive: s.t, SL2VL: s.opt.SL2VL, PathSLs: s.opt.PathSLs}
	if err := c.CheckAdaptive(in); err != nil {
		t.Error(err)
		return
	}
	deps := s.unicast
	if c.Management {
		deps = s.all
	}
	type dependency struct{ from, to channel }
	var list []dependency
	for from, next := range deps {
		for to := range next {
			list = append(list, dependency{from, to})
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b dependency) int {
		return cmp.Or(cmp.Compare(a.from.port, b.from.port), cmp.Compare(a.from.vl, b.from.vl), cmp.Compare(a.to.port, b.to.port), cmp.Compare(a.to.vl, b.to.vl))
	})
	d := list[r.IntN(len(list))]
	at := func(x channel) int {
		return slices.IndexFunc(c.Channels, func(n verify.NumberedChannel) bool {
			return n.GUID == s.f.Node(s.f.Owner(x.port)).GUID && n.Port == s.f.Num(x.port) && n.VL == x.vl
		})
	}
	c.Channels[at(d.to)].Number = c.Channels[at(d.from)].Number
	if err := c.CheckAdaptive(in); err == nil {
		t.Errorf("the certificate holds without climbing from %v to %v", d.from, d.to)
	}
}

// farEntry is a row of a private LFT in a random far file.
type farEntry struct {
	static int // 255 for no path
	free   bool
	group  []int // its ports
}

// randomFAR writes a far file with PLFT 0 on all switches and PLFT 1 on most. It returns the
// rows by switch, PLFT and LID; a switch has nil for a PLFT that it lacks. Most rows lead
// nearer to the LID. Some are missing, have static port 255, or lead anywhere.
func randomFAR(f *fabric.Fabric, r *rand.Rand) (string, [][2]map[fabric.LID]farEntry) {
	var b strings.Builder
	b.WriteString("File version: 1\n")
	rows := make([][2]map[fabric.LID]farEntry, f.NumSwitches())
	hops := f.Distances()
	spoil := []int{10, 100, 1000}[r.IntN(3)]
	for s := range rows {
		var groups [][]int
		var tables strings.Builder
		for plft := range 1 + min(1, r.IntN(6)) {
			rows[s][plft] = map[fabric.LID]farEntry{}
			fmt.Fprintf(&tables, "PLFT_NUM: %d, top: 0x%04x\nLID Static Port Lid State Group\n-\n", plft, f.MaxLID())
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				at := f.Attachment(f.LIDPort(lid))
				if at == fabric.NoPort {
					continue
				}
				var near []int
				links, to := f.SwitchLinks(fabric.NodeID(s))
				for i, out := range links {
					if hops.To(f.Owner(at))[to[i]] < hops.To(f.Owner(at))[s] {
						near = append(near, int(f.Num(out)))
					}
				}
				if int(f.Owner(at)) == s {
					near = []int{int(f.Num(at))}
				}
				e := farEntry{static: 255, free: r.IntN(2) == 0}
				if len(near) > 0 && (!e.free || r.IntN(4) > 0) {
					e.static = near[r.IntN(len(near))]
				}
				if e.free && (e.static == 255 || r.IntN(4) > 0) {
					e.group = near
				}
				if r.IntN(spoil) == 0 {
					switch r.IntN(4) {
					case 0:
						continue // no row
					case 1:
						e = farEntry{static: 255}
					case 2:
						e = farEntry{static: 255, free: true}
					default:
						e.static = r.IntN(int(f.Node(fabric.NodeID(s)).NumPorts) + 1)
					}
				}
				rows[s][plft][lid] = e
				state := "Static"
				if e.free {
					state = "Free"
				}
				fmt.Fprintf(&tables, "0x%04x %d %s %d\n", lid, e.static, state, len(groups))
				groups = append(groups, e.group)
			}
		}
		fmt.Fprintf(&b, "\nSwitch 0x%016x, LID 1\nGroups Definition:\nGroup Sub Group WHBF Ports\n-\n", uint64(f.Node(fabric.NodeID(s)).GUID))
		for i, ports := range groups {
			fmt.Fprintf(&b, "%d 0 0 ", i)
			for _, p := range ports {
				fmt.Fprintf(&b, "%d,", p)
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "LFT Definition:\n%s", tables.String())
	}
	return b.String(), rows
}

// TestFARWithTwoPLFTs reads random far files with two private LFTs of which nothing says
// which packets take which, and follows each packet by every choice of every table.
func TestAdaptiveFARWithTwoPLFTs(t *testing.T) {
	lossy := 0
	for seed := range short.Of(*trials, 50) {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		f := randomFabric(t, r, 1+r.IntN(5), r.IntN(6), 2+r.IntN(5))
		text, rows := randomFAR(f, r)
		tables, problems, err := dump.ReadFAR("far", []byte(text), f, dump.Options{})
		if err != nil || problems != nil {
			t.Fatalf("seed %d: %v %v\n%s", seed, err, problems, text)
		}
		got := short.Must(verify.CheckAdaptive(t.Context(), withTables(f, tables, state.State{}), verify.Options{}))(t)
		// lost follows a packet from a switch; seen has the switches that it was in.
		var lost func(s fabric.NodeID, lid fabric.LID, seen map[fabric.NodeID]bool) bool
		lost = func(s fabric.NodeID, lid fabric.LID, seen map[fabric.NodeID]bool) bool {
			if seen[s] {
				return false
			}
			seen[s] = true
			for _, plft := range rows[s] {
				if plft == nil {
					continue
				}
				e, has := plft[lid]
				choices := slices.Clone(e.group)
				if has && e.static != 255 {
					choices = append(choices, e.static)
				}
				if len(choices) == 0 {
					return true
				}
				for _, num := range choices {
					out := f.Port(s, fabric.PortNum(num))
					peer, owner := f.Peer(out), f.LIDPort(lid)
					switch {
					case out == owner, num > 0 && peer == owner:
					case num == 0, peer == fabric.NoPort, !f.IsSwitch(f.Owner(peer)):
						return true
					default:
						if lost(f.Owner(peer), lid, seen) {
							return true
						}
					}
				}
			}
			return false
		}
		var pairs, management int64
		f.EndPorts(func(from fabric.PortID) {
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				to := f.LIDPort(lid)
				start, end := f.Attachment(from), f.Attachment(to)
				parts := f.Components()
				switch {
				case to == from, start == fabric.NoPort, end == fabric.NoPort, parts.Of[f.Owner(start)] != parts.Of[f.Owner(end)]:
				case !lost(f.Owner(start), lid, map[fabric.NodeID]bool{}):
				case f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to)):
					management++
				default:
					pairs++
				}
			}
		})
		if n := *got.Adaptive; n.DeadEnds != pairs || n.ManagementDeadEnds != management {
			t.Fatalf("seed %d: %d pairs lost and %d of management, want %d and %d\n%s", seed, n.DeadEnds, n.ManagementDeadEnds, pairs, management, text)
		}
		told := append([]verify.Undecided{}, got.Undecided...)
		for _, x := range got.Findings {
			told = append(told, verify.Undecided{Rule: x.Rule})
		}
		if is := slices.ContainsFunc(told, func(u verify.Undecided) bool { return u.Rule == verify.AdaptiveDeadEnd }); is != (pairs > 0) {
			t.Fatalf("seed %d: %d pairs are lost, and %v is told", seed, pairs, told)
		}
		lossy += int(min(1, pairs))
	}
	t.Logf("%d with pairs that are lost", lossy)
}

// CheckAdaptive tells of its progress, leaves rules undecided for LIDs of ports that the topology may not
// have, and refuses what it does not follow.
func TestAdaptiveOptions(t *testing.T) {
	f := randomFabric(t, rand.New(rand.NewPCG(1, 20)), 4, 4, 4)
	ports := lft.NewTables(f.NumSwitches(), f.MaxLID()+1)
	ports.Row(0)[f.MaxLID()+1] = 1
	s := withTables(f, &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(ports)}}, state.State{})
	for _, complete := range []bool{false, true} {
		told, parts := 0, 0
		r := short.Must(verify.CheckAdaptive(t.Context(), s, verify.Options{Complete: complete, Workers: 1, Progress: func(done, total int) { told, parts = told+1, total }}))(t)
		if told == 0 || told != parts {
			t.Errorf("told %d times of %d parts", told, parts)
		}
		if undecided := len(r.Undecided) > 0; undecided == complete {
			t.Errorf("complete %t: undecided %v", complete, r.Undecided)
		}
	}
	for _, opt := range []verify.Options{{Copying: verify.Wormhole}, {Buffer: verify.Buffer{MTU: 2048, Credits: 40}}} {
		if r, err := verify.CheckAdaptive(t.Context(), s, opt); err == nil || r != nil {
			t.Errorf("%+v: %v, want an error", opt, r)
		}
	}
}
