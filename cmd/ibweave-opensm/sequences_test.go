package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// maxSteps bounds the steps to balanced tables after the last event of a sequence.
const maxSteps = 50

// TestChaosSequences wants tables to be clean after random sequences of failures, repairs, restarts and takeovers,
// and balanced after some more sweeps that OpenSM begins without a signal and without an event on the fabric. Each sequence
// has a fabric and a seed of its own.
func TestChaosSequences(t *testing.T) {
	tree := func(radix, levels int) func() (*fabric.Fabric, error) {
		return func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels})
		}
	}
	irregular := func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 5, Hosts: 64, Seed: 7})
	}
	parallel := func() (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{10}, Hosts: 12, Spines: 6, Parallel: 2})
	}
	cases := []chaosCase{
		{name: "updn", engine: "ibweave-updn,updn", make: tree(6, 3)},
		{name: "fattree", engine: "ibweave-fattree,ibweave-updn,updn", make: parallel},
		{name: "layered", engine: "ibweave-layered,ibweave-updn,updn", options: []string{"qos TRUE"}, make: tree(12, 2)},
		{name: "updn, irregular", engine: "ibweave-updn,updn", make: irregular},
		{name: "fattree, three levels", engine: "ibweave-fattree,ibweave-updn,updn", make: tree(6, 3)},
		{name: "layered, irregular", engine: "ibweave-layered,ibweave-updn,updn", options: []string{"qos TRUE"}, make: irregular},
	}
	for i := range cmp.Or(*sequences, short.Usual(6, 2)) {
		tc := cases[i%len(cases)]
		tc.config = keepsTables
		t.Run(fmt.Sprintf("%d %s", i, tc.name), func(t *testing.T) {
			c := tc.begin(t)
			c.rnd = rand.New(rand.NewPCG(*seed, uint64(i)))
			c.startOpenSM()
			defer func() { _ = c.o.Stop() }()
			c.dial()
			c.settle()
			for range 3 + c.rnd.IntN(4) {
				c.happen()
				c.settle()
			}
			c.cutSome()
			c.signal(syscall.SIGHUP) // OpenSM hears of it
			b := c.awaitBalance()
			t.Logf("%v; by %s, at most %d routes on a cable, %d from scratch, %d after %d steps", c.kinds, c.last, b.first, b.fresh, b.last, b.steps)
		})
	}
}

// happen does one thing to the fabric or to OpenSM.
func (c *chaos) happen() {
	c.t.Helper()
	next := c.replace
	if c.rnd.IntN(2) == 0 && c.priority > 1 {
		next = c.takeOver
	}
	switch c.rnd.IntN(6) {
	case 0:
		next(func() {})
	case 1:
		next(func() {
			c.disturb()
			c.signal(syscall.SIGHUP)
			c.pause(150)
		})
	case 2:
		next(c.disturb) // seen by the next OpenSM alone
	default:
		c.disturb()
	}
}

// cutSome takes away cables between switches that are not the only way to any port.
func (c *chaos) cutSome() {
	c.t.Helper()
	there := c.connected()
	for range 1 + c.rnd.IntN(3) {
		p := one(c.rnd, c.cables)
		if c.down[p] || !c.f.IsSwitch(c.f.Owner(p)) || !c.f.IsSwitch(c.f.Owner(c.f.Peer(p))) {
			continue
		}
		c.down[p] = true
		alone := !slices.Equal(c.connected(), there)
		if delete(c.down, p); !alone {
			c.cut(p, "Unlink")
		}
	}
}

// balance is the routes on the busiest cable when OpenSM had seen the last event, at the end, and in tables from scratch.
type balance struct{ first, last, fresh, steps int }

// awaitBalance reads tables until they are clean and no cable has more than lft.DefaultRebalance times the routes of
// the busiest one in tables of the compiler.
func (c *chaos) awaitBalance() (b balance) {
	c.t.Helper()
	there := c.connected()
	begun := c.moves()
	e, f := "", (*fabric.Fabric)(nil)
	for end := time.Now().Add(hung); ; time.Sleep(50 * time.Millisecond) {
		_, err := c.read(there)
		d := short.Must(c.client.Discover(c.t.Context()))(c.t)
		got := short.Must(c.client.Pull(c.t.Context(), d, subnet.PullOptions{LFT: true}))(c.t)
		c.mu.Lock()
		name := strings.TrimPrefix(c.last, "ibweave-")
		c.mu.Unlock()
		if b.last = busiestCable(d.Fabric, got.LFT); err == nil && (e != name || !fabric.SameTopology(f, d.Fabric)) {
			e, f = name, d.Fabric
			engine := short.Must(compile.EngineByName(name))(c.t)
			r := short.Must(compile.Run(c.t.Context(), f, engine, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}))(c.t)
			b.first, b.fresh = b.last, busiestCable(f, r.Routing.Tables)
		}
		b.steps = c.moves() - begun
		switch {
		case b.steps > maxSteps:
			c.fail("%+v", b)
		case err == nil && float64(b.last) <= lft.DefaultRebalance*float64(b.fresh):
			return b
		case time.Now().After(end):
			c.fail("by %s %+v: %v", name, b, err)
		}
	}
}

// moves is how many steps towards balanced tables there were.
func (c *chaos) moves() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// busiestCable follows all packets between hosts, and counts those that each direction of each cable between
// switches carries. It returns the most.
func busiestCable(f *fabric.Fabric, t *lft.Tables) (most int) {
	routes := make(map[fabric.PortID]int)
	for _, to := range f.CAPorts() {
		for lid := f.LID(to); lid < f.LID(to)+1<<f.LMC(to); lid++ {
			for _, from := range f.CAPorts() {
				if from == to || f.Peer(from) == fabric.NoPort {
					continue
				}
				for at, hops := f.Owner(f.Peer(from)), 0; at != f.Owner(to) && hops < f.NumSwitches(); hops++ {
					num := t.Row(at)[lid]
					if num == 0 || num > f.Node(at).NumPorts {
						break // it is in another piece
					}
					out := f.Port(at, num)
					if f.Peer(out) == fabric.NoPort {
						break
					}
					if at = f.Owner(f.Peer(out)); f.IsSwitch(at) {
						routes[out]++
						most = max(most, routes[out])
					}
				}
			}
		}
	}
	return most
}
