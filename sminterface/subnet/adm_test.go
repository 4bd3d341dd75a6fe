package subnet

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// defaultSMKey is the key by which OpenSM trusts a request unless it has another
// (OSM_DEFAULT_SA_KEY): it shows the ports of a group to such requests only.
const defaultSMKey uint64 = 1

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// openSM runs OpenSM until the test ends.
func openSM(t testing.TB, s *ibsim.Sim, cfg ibsim.OpenSMConfig) *ibsim.OpenSM {
	t.Helper()
	cfg.Dir = t.TempDir()
	return short.Must(ibsim.StartOpenSM(t.Context(), s, cfg))(t)
}

func mesh4x4(t testing.TB) *fabric.Fabric {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

func TestJoin(t *testing.T) {
	s, twin := ibsimtest.Start(t, mesh4x4(t))
	c := dial(t, s, "")
	if _, err := c.Manager(t.Context()); !errors.Is(err, ErrNoManager) {
		t.Errorf("without OpenSM: %v", err)
	}
	sm := openSM(t, s, ibsim.OpenSMConfig{})
	m := short.Must(c.Manager(t.Context()))(t)
	if m.SubnetPrefix != mad.DefaultSubnetPrefix || twin.Fabric.LIDPort(m.LID) == fabric.NoPort {
		t.Errorf("manager %+v", m)
	}
	hosts := twin.Fabric.CAPorts()
	port := func(i int) fabric.GUID { return twin.Fabric.PortGUID(hosts[i]) }
	mgid := netip.MustParseAddr("ff12:a01d:fe80::1")
	// state asks how a port takes part.
	state := func(i int) mad.JoinState {
		t.Helper()
		list := short.Must(c.Members(t.Context(), m, mad.MCMemberRecord{MGID: mgid, PortGID: mad.PortGID(m.SubnetPrefix, port(i))},
			mad.MCMemberMGID|mad.MCMemberPortGID, defaultSMKey))(t)
		switch len(list) {
		case 0:
			return 0
		case 1:
			if list[0].MGID != mgid || list[0].PortGID != mad.PortGID(m.SubnetPrefix, port(i)) || list[0].MLID != 0xc010 {
				t.Errorf("record %+v", list[0])
			}
			return list[0].JoinState
		}
		t.Fatalf("%d records", len(list))
		return 0
	}
	var noGroup *NoGroupError
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, Port: port(0), State: mad.SendOnlyNonMember}); !errors.As(err, &noGroup) {
		t.Errorf("a send-only member made a group: %v", err)
	}
	for i, want := range []mad.JoinState{mad.FullMember, mad.SendOnlyNonMember, mad.NonMember, mad.FullMember} {
		r, err := c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc010, Port: port(i), State: want})
		if err != nil || r.MLID != 0xc010 || r.JoinState != want {
			t.Fatalf("join of host %d: %+v, %v", i, r, err)
		}
		if got := state(i); got != want {
			t.Errorf("host %d is %v, want %v", i, got, want)
		}
	}
	// The default state is a full member, and adds to what there is.
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, Port: port(1)}); err != nil {
		t.Error(err)
	}
	if got := state(1); got != mad.FullMember|mad.SendOnlyNonMember {
		t.Errorf("host 1 is %v", got)
	}
	// Another MLID is refused, and changes nothing.
	var wrong *MLIDError
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(4)}); !errors.As(err, &wrong) || wrong.Got != 0xc010 {
		t.Errorf("a join with another MLID: %v", err)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(0)}); !errors.As(err, &wrong) {
		t.Errorf("a leave with another MLID: %v", err)
	}
	if got := state(4); got != 0 {
		t.Errorf("host 4 is %v", got)
	}
	// Untrusted requests see groups, not ports.
	list, err := c.Members(t.Context(), m, mad.MCMemberRecord{}, 0, 0)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d groups, want ours and the broadcast group: %v", len(list), err)
	}
	for _, r := range list {
		if r.JoinState != 0 || r.PortGID != netip.IPv6Unspecified() {
			t.Errorf("an untrusted request sees %+v", r)
		}
	}
	// Four records do not fit into one of libumad2sim.so's MADs.
	if _, err := c.Members(t.Context(), m, mad.MCMemberRecord{MGID: mgid}, mad.MCMemberMGID, defaultSMKey); !errors.Is(err, mad.ErrTruncated) {
		t.Errorf("a long list: %v", err)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, MLID: 0xc010, Port: port(1), State: mad.SendOnlyNonMember}); err != nil {
		t.Error(err)
	}
	if got := state(1); got != mad.FullMember {
		t.Errorf("host 1 is %v after it left as a sender", got)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); err != nil {
		t.Error(err)
	}
	if got := state(0); got != 0 {
		t.Errorf("host 0 is %v after it left", got)
	}
	var status *mad.StatusError
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); !errors.As(err, &status) {
		t.Errorf("a port that left leaves: %v", err)
	}
	if err := sm.Stop(); err != nil {
		t.Error(err)
	}
	if run := sm.Run(); !run.UP || run.Version == "" {
		t.Errorf("run %+v", run)
	}
}
