package subnet

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
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
	return fabrictest.WithLIDs(t, fabrictest.Grid(t, 1, false, 4, 4), 0)
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
		short.Equal(t, state(i), want, "host", i)
	}
	// The default state is a full member, and adds to what there is.
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, Port: port(1)}); err != nil {
		t.Error(err)
	}
	short.Equal(t, state(1), mad.FullMember|mad.SendOnlyNonMember, "host 1")
	// Another MLID is refused, and changes nothing.
	var wrong *MLIDError
	if _, err := c.Join(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(4)}); !errors.As(err, &wrong) || wrong.Got != 0xc010 {
		t.Errorf("a join with another MLID: %v", err)
	}
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, MLID: 0xc011, Port: port(0)}); !errors.As(err, &wrong) {
		t.Errorf("a leave with another MLID: %v", err)
	}
	short.Equal(t, state(4), 0, "host 4")
	// Untrusted requests see groups, not ports.
	list := short.Must(c.Members(t.Context(), m, mad.MCMemberRecord{}, 0, 0))(t)
	short.MustEqual(t, len(list), 2, "groups, want ours and the broadcast group")
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
	short.Equal(t, state(1), mad.FullMember, "host 1", "after it left as a sender")
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); err != nil {
		t.Error(err)
	}
	short.Equal(t, state(0), 0, "host 0", "after it left")
	var status *mad.StatusError
	if _, err := c.Leave(t.Context(), m, Membership{MGID: mgid, Port: port(0)}); !errors.As(err, &status) {
		t.Errorf("a port that left leaves: %v", err)
	}
	short.Check(t, sm.Stop())
	if run := sm.Run(); !run.UP || run.Version == "" {
		t.Errorf("run %+v", run)
	}
}
