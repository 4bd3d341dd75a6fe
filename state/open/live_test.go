package open_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/subnet"
	"github.com/ibweave/ibweave/state/open"
)

// What pull asks for by default is at most 45 requests for each end port, so that a fabric of 1,336 ports takes
// at most 60,000 (42,544 were sent for 1,344 ports; this fabric has 612), and about as many as it says before. It is the same that
// asking for everything gives. Of paths it asks for a sample alone, since OpenSM uses one SL.
func TestRequests(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: short.Of(12, 8), Levels: 3})
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs})
	}
	if err != nil {
		t.Fatal(err)
	}
	sim, _ := ibsimtest.Start(t, f)
	sm := short.Must(ibsim.StartOpenSM(t.Context(), sim, ibsim.OpenSMConfig{Engine: "minhop", Dir: t.TempDir(), Options: []string{"sweep_interval 0"}}))(t)
	defer func() { _ = sm.Stop() }()
	live := func(opt open.LiveOptions) *open.Swept {
		t.Helper()
		transport := short.Must(sim.Dial(t.Context(), ""))(t)
		c := subnet.New(transport, subnet.Options{})
		defer func() { _ = c.Close() }()
		s, err := open.Live(t.Context(), c, opt)
		if err != nil || len(s.Problems) > 0 || s.SLsFailed != nil {
			t.Fatal(err, s)
		}
		return s
	}
	said, found := 0, 0
	transport := short.Must(sim.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{})
	d, err := c.Discover(t.Context())
	if found = d.Requests; err != nil || c.Close() != nil {
		t.Fatal(err)
	}
	some := live(open.LiveOptions{SomeMaps: true, PathSLs: true, PKeys: true, Before: func(n int, _ string) { said += n }})
	ports := 0
	some.Fabric.EndPorts(func(fabric.PortID) { ports++ })
	if most := 60_000 * ports / 1336; some.Requests > most || some.SampledSLs == 0 || some.FewSLs {
		t.Errorf("%d requests for %d end ports, want at most %d; %d paths were sampled", some.Requests, ports, most, some.SampledSLs)
	}
	if asked := some.Requests - found - some.SampledSLs; 10*said < 8*asked || 8*said > 10*asked {
		t.Errorf("%d requests were announced, and %d sent", said, asked)
	}
	t.Logf("%d end ports: %d announced, %d sent, %d of %d maps", ports, said, some.Requests, some.AskedMaps, some.Maps)
	some.PathSLs = nil
	all := live(open.LiveOptions{MaxMLID: 0xc01f})
	if err := same(some.State, all.State); err != nil || all.AskedMaps != all.Maps || some.AskedMaps*4 > all.Maps {
		t.Errorf("%d maps asked for, and %d of %d by default: %v", all.AskedMaps, some.AskedMaps, some.Maps, err)
	}
}
