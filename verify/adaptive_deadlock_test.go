package verify_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var tiny = flag.Int("tiny", 50, "tiny fabrics whose states are all searched")

// network is all that packets of CA ports can do in a tiny fabric whose channels between
// switches, (cable, VL), have room for one packet each.
type network struct {
	channels []channel
	kinds    []kind
	// By channel and kind of the packet in it: where the packet can go, and the ports that it is
	// sure to be offered if it is blocked, of which an adversary chooses one.
	moves, offers [][][]int // indices of channels; gone for the owner
	sources       [][]int   // by kind: the channels that senders put packets into
}

// kind is packets that take the same way.
type kind struct {
	lid fabric.LID
	sl  fabric.SL
}

const gone = -1

// newNetwork returns nil if there are too many channels and kinds for a jam of 64 bits.
func newNetwork(s *slow) *network {
	n := &network{}
	at := func(out fabric.PortID, vl fabric.VL) int {
		if s.f.PeerSwitch(out) == fabric.NoNode {
			return gone
		}
		c := channel{out, vl}
		if i := slices.Index(n.channels, c); i >= 0 {
			return i
		}
		n.channels = append(n.channels, c)
		n.moves, n.offers = append(n.moves, make([][]int, 16)), append(n.offers, make([][]int, 16))
		return len(n.channels) - 1
	}
	var follow func(c, k int)
	enter := func(in fabric.PortID, k int) (moves, offers []int) {
		h := s.look(in, n.kinds[k].lid, n.kinds[k].sl)
		for out, vl := range h.good {
			c := at(out, vl)
			moves = append(moves, c)
			if slices.Contains(h.offers, out) {
				offers = append(offers, c)
			}
			if c != gone {
				follow(c, k)
			}
		}
		return moves, offers
	}
	follow = func(c, k int) {
		if n.moves[c][k] == nil {
			n.moves[c][k] = []int{gone} // while the packet is followed
			moves, offers := enter(s.f.Peer(n.channels[c].port), k)
			n.moves[c][k], n.offers[c][k] = moves, offers
		}
	}
	for _, from := range s.f.CAPorts() {
		for _, to := range s.f.CAPorts() {
			for lid := range s.f.LIDs(to) {
				for _, sl := range s.sls(from, lid) {
					if from == to {
						continue
					}
					k := slices.Index(n.kinds, kind{lid, sl})
					if k < 0 {
						k = len(n.kinds)
						n.kinds = append(n.kinds, kind{lid, sl})
						n.sources = append(n.sources, nil)
					}
					if k >= 15 {
						return nil
					}
					moves, _ := enter(s.f.Attachment(from), k)
					n.sources[k] = append(n.sources[k], moves...)
				}
			}
		}
	}
	if len(n.channels) > 16 {
		return nil
	}
	return n
}

// leaves says whether a packet that is in a channel goes to its owner next. Nothing stops it,
// so that it need not stay in a state.
func (n *network) leaves(c, k int) bool {
	return !slices.ContainsFunc(n.moves[c][k], func(to int) bool { return to != gone })
}

// jam has 4 bits for each channel: 0, or 1 + the kind of its packet.
type jam uint64

func (s jam) at(c int) int          { return int(s>>(4*c)&15) - 1 }
func (s jam) with(c int, k int) jam { return s&^(15<<(4*c)) | jam(k+1)<<(4*c) }

// deadlocks searches all states that senders and switches can bring about. It says whether
// all packets can be blocked: with bound when each is bound to any port that it may
// choose, with offered when each is offered its static port. ok is false if there are more
// states than limit.
func (n *network) deadlocks(limit int) (bound, offered, ok bool) {
	seen := map[jam]bool{0: true}
	queue := []jam{0}
	reach := func(s jam) {
		if !seen[s] {
			seen[s] = true
			queue = append(queue, s)
		}
	}
	for at := 0; at < len(queue); at++ {
		if len(queue) > limit {
			return false, false, false
		}
		s := queue[at]
		full := func(c int) bool { return c != gone && s.at(c) >= 0 }
		for k, list := range n.sources {
			for _, c := range list {
				if c != gone && !full(c) && !n.leaves(c, k) {
					reach(s.with(c, k))
				}
			}
		}
		allBound, allOffered := s != 0, s != 0
		for c := range n.channels {
			k := s.at(c)
			if k < 0 {
				continue
			}
			for _, to := range n.moves[c][k] {
				switch {
				case to == gone, !full(to) && n.leaves(to, k):
					reach(s.with(c, -1))
				case !full(to):
					reach(s.with(c, -1).with(to, k))
				}
			}
			allBound = allBound && slices.ContainsFunc(n.moves[c][k], full)
			allOffered = allOffered && slices.ContainsFunc(n.offers[c][k], full)
		}
		bound, offered = bound || allBound, offered || allOffered
	}
	return bound, offered, true
}

// tinyFabric is a ring of three or four switches, of one or two cables each, with a chord now
// and then and a host on most switches.
func tinyFabric(t *testing.T, r *rand.Rand) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	n := 3 + r.IntN(2)
	ports := make([]fabric.PortNum, 2*n)
	for s := range n {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(s + 1), Type: fabric.Switch, NumPorts: 8}))(t)
	}
	cable := func(x, y int) {
		ports[x]++
		from := ports[x]
		ports[y]++
		short.Check(t, b.Connect(x, from, y, ports[y], fabric.Link{}))
	}
	double := r.IntN(2)
	for s := range n {
		for range 1 + double {
			cable(s, (s+1)%n)
		}
	}
	for range (1 - double) * r.IntN(2) {
		s := r.IntN(n)
		cable(s, (s+1+r.IntN(n-1))%n)
	}
	for s := range n {
		if r.IntN(6) > 0 {
			h := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(100 + s), Type: fabric.CA, NumPorts: 1}))(t)
			cable(h, s)
		}
	}
	f := short.Must(b.Build())(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

// The claims of Check.
const (
	noLoop  = "no loop"
	escape  = "escape"
	noClaim = "none"
)

// tinyTables makes tables and lanes for a tiny fabric. For an escape a second cable is good.
func tinyTables(f *fabric.Fabric, r *rand.Rand, want string) (*adaptive.Tables, state.State) {
	states := [][]adaptive.State{{adaptive.Free}, {adaptive.Free}, {adaptive.Free, adaptive.HBF}, {adaptive.HBF}}[r.IntN(4)]
	tables := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), Select: adaptive.NewSelector(f)}
	for range 1 + r.IntN(2) {
		style := r.IntN(anyPorts)
		if want == escape && r.IntN(2) == 0 {
			style = parallel
		}
		tables.PLFTs = append(tables.PLFTs, randomPLFT(f, tables, r, style, 0, states))
	}
	for _, s := range f.Switches() {
		for in := range int(f.Node(s).NumPorts) + 1 {
			for sl := range 2 {
				tables.Select.Row(s, fabric.PortNum(in))[sl] = uint8(r.IntN(len(tables.PLFTs)))
			}
		}
	}
	opt := state.State{PathSLs: lft.NewPathSLs(f.NumSwitches(), f.MaxLID())}
	if r.IntN(3) == 0 {
		opt.SL2VL = randomLanes(f, r).SL2VL
	}
	for _, s := range f.Switches() {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			row[lid] = fabric.SL(r.IntN(3) / 2)
		}
		opt.PathSLs.SetRow(row, s)
	}
	return tables, opt
}

// TestStates searches all states of tiny fabrics, as many of each claim of Check. No packets
// are stuck where it says that all choices together have no credit loop, whatever
// ports the switches bind them to, and none where it says that there is an escape, if they
// are offered their static ports. Where it says neither, some are.
func TestAdaptiveStates(t *testing.T) {
	kinds := map[string]int{}
	claims := []string{noLoop, escape, noClaim}
	for seed, done := 0, 0; done < short.Of(*tiny, min(*tiny, 6)); seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 22))
		want := claims[done%len(claims)]
		f := tinyFabric(t, r)
		tables, opt := tinyTables(f, r, want)
		got := short.Must(verify.CheckAdaptive(t.Context(), withTables(f, tables, opt), verify.Options{}))(t)
		claim := noClaim
		switch {
		case got.Adaptive.DeadEnds > 0 || got.Adaptive.Loops > 0:
			continue
		case got.Adaptive.CreditLoops == 0:
			claim = noLoop
		case got.Adaptive.NoEscape == 0:
			claim = escape
		}
		if claim != want {
			continue
		}
		n := newNetwork(&slow{f: f, t: tables, opt: opt})
		if n == nil {
			continue
		}
		bound, offered, ok := n.deadlocks(100_000)
		if !ok {
			continue
		}
		done++
		if claim == noLoop && bound || claim == escape && offered {
			t.Errorf("seed %d: %s, and packets are stuck", seed, claim)
		}
		kinds[claim]++
		if bound {
			kinds[claim+", stuck when bound"]++
		}
		if offered {
			kinds[claim+", stuck"]++
		}
	}
	t.Log(kinds)
	for _, kind := range []string{noClaim + ", stuck", escape + ", stuck when bound"} {
		if kinds[kind] == 0 {
			t.Errorf("none of %q: the fabrics do not cover everything", kind)
		}
	}
}
