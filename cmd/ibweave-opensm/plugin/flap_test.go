package plugin

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
)

// flapping is a plugin that holds cables back, and the fabric that it routes.
type flapping struct {
	*opened
	f     *fabric.Fabric
	asked atomic.Int32 // for sweeps
}

const flapThrice = "flap: {count: 3, window: 10m, hold: 30m}\nlog: {file: /dev/null}\n"

func openFlapping(t *testing.T, f *fabric.Fabric, engines ...compile.Engine) *flapping {
	o := &flapping{opened: open(t, flapThrice, engines...), f: f}
	o.host.Sweep = func() { o.asked.Add(1) }
	return o
}

// route routes the fabric without some cables, and returns how many the tables' fabric has.
func (o *flapping) route(t *testing.T, engine string, without ...fabric.PortID) int {
	t.Helper()
	got, err := o.Route(o.engine(engine), snapshotOf(o.f.Without(without...), rand.New(rand.NewPCG(1, 2))))
	if err != nil {
		t.Fatal(err)
	}
	o.Written(got)
	return got.Fabric.NumLinks()
}

// said counts the lines of OpenSM's log that have a text.
func (o *flapping) said(text string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// TestFlap wants a cable that goes three times in ten minutes to be left alone until it has been up for 30, and OpenSM
// to be asked for a sweep then; and one that goes less often, or the last of a leaf, or with its switch, to be used.
func TestFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 4, Spines: 2, Parallel: 1})
		o := openFlapping(t, withLIDs(t, f, err))
		all := o.f.NumLinks()
		up, _ := o.f.SwitchLinks(0)
		a, b := up[0], up[1]
		use := func(want int, without ...fabric.PortID) {
			t.Helper()
			if got := o.route(t, "updn", without...); got != want {
				t.Fatalf("%d cables are in use, want %d", got, want)
			}
		}
		use(all)
		for range 2 { // seldom, 10 minutes apart
			use(all-1, a)
			time.Sleep(6 * time.Minute)
			use(all)
			time.Sleep(6 * time.Minute)
		}
		for i := range 3 {
			use(all-1, a)
			time.Sleep(time.Minute)
			use(all-i/2, nil...)
			time.Sleep(time.Minute)
		}
		if o.said("was lost 3 times within 10m0s: not used until it has been up for 30m0s") != 1 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
		use(all - 1)
		use(all-1, a) // gone again, and so from now on
		use(all - 1)
		time.Sleep(29 * time.Minute)
		if use(all - 1); o.asked.Load() > 0 {
			t.Error("a sweep before the time")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if o.asked.Load() != 1 {
			t.Errorf("%d sweeps asked for, want 1", o.asked.Load())
		}
		use(all)
		if o.said("has been up for 30m0s: used again") != 1 || o.said("not used until") != 1 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
		// The other cable of the leaf fails while the first is held back: it is used at once.
		for range 3 {
			use(all-1, a)
			o.route(t, "updn")
		}
		use(all - 1)
		use(all-1, b)
		if o.said("used all the same: no other") != 1 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
		use(all)
	})
}

// TestFlapOfHostsAndSwitches wants cables of hosts, and those of a switch that restarts, to be used at once.
func TestFlapOfHostsAndSwitches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 4, Spines: 3, Parallel: 2})
		o := openFlapping(t, withLIDs(t, f, err))
		up, _ := o.f.SwitchLinks(0)
		spine := o.f.Peer(up[0])
		whole := snapshotOf(o.f, rand.New(rand.NewPCG(1, 2)))
		i := slices.IndexFunc(whole.Nodes, func(n Node) bool { return n.GUID == o.f.Node(o.f.Owner(spine)).GUID })
		for range 5 {
			o.route(t, "updn", o.f.CAPorts()[0])
			o.route(t, "updn")
			if _, err := o.Route(o.engine("updn"), withoutNode(whole, i)); err != nil {
				t.Fatal(err)
			}
			if got := o.route(t, "updn"); got != o.f.NumLinks() {
				t.Fatalf("%d of %d cables are in use", got, o.f.NumLinks())
			}
		}
	})
}

// whole routes fabrics with a number of cables only.
type whole struct {
	lft.Minhop
	links *int
}

func (w whole) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if f.NumLinks() < *w.links {
		return nil, errors.New("a cable is missing")
	}
	return w.Minhop.Route(ctx, f, opt)
}

// TestFlapOrNothing gives a plugin an engine that refuses the fabric while a cable is held back: it is used again.
func TestFlapOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 4, Spines: 2, Parallel: 1})
		f = withLIDs(t, f, err)
		links := 0
		o := openFlapping(t, f, compile.Engine{Engine: whole{lft.Minhop{}, &links}})
		o.config.Incremental = false
		up, _ := f.SwitchLinks(0)
		o.route(t, "minhop")
		for range 4 {
			links = f.NumLinks() - 1
			o.route(t, "minhop", up[0])
			links = f.NumLinks()
			if got := o.route(t, "minhop"); got != links {
				t.Errorf("%d of %d cables are in use", got, links)
			}
		}
		if o.said("cables that come and go are used all the same") != 2 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
	})
}

// TestFlapInPieces wants a cable to be held back in a fabric in pieces, too, and the time that it has been up to start
// again at zero when its switch comes back.
func TestFlapInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{4}, Hosts: 4, Spines: 2, Parallel: 1})
		o := openFlapping(t, withLIDs(t, f, err))
		up, spines := o.f.SwitchLinks(0)
		cut, _ := o.f.SwitchLinks(3)
		pieces := snapshotOf(o.f.Without(cut...), rand.New(rand.NewPCG(1, 2)))
		spine := slices.IndexFunc(pieces.Nodes, func(n Node) bool { return n.GUID == o.f.Node(spines[0]).GUID })
		all := o.f.NumLinks() - len(cut)
		use := func(want int, without ...fabric.PortID) {
			t.Helper()
			if got := o.route(t, "updn", slices.Concat(cut, without)...); got != want {
				t.Errorf("%d cables are in use, want %d", got, want)
			}
		}
		use(all)
		for i := range 3 {
			use(all-1, up[0])
			time.Sleep(time.Minute)
			use([]int{all, all, all - 1}[i])
		}
		time.Sleep(20 * time.Minute)
		if _, err := o.Route(o.engine("updn"), withoutNode(pieces, spine)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		use(all - 1)
		time.Sleep(31 * time.Minute)
		use(all)
		if o.said("used all the same") != 0 {
			t.Errorf("OpenSM's log has %q", o.lines)
		}
	})
}
