package partitions

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

func testFabric(t testing.TB) *fabric.Fabric {
	t.Helper()
	data := short.Must(os.ReadFile("testdata/fabric.ibnetdiscover"))(t)
	f, _ := short.Must2(topology.Parse("fabric", data, topology.Options{}))(t)
	return f
}

// Files without tables: what OpenSM would make of them. H1 has the subnet manager.
func TestCheckConf(t *testing.T) {
	f := testFabric(t)
	for _, c := range []struct {
		conf string
		want []string
	}{
		{"Default=0x7fff:ALL=full;", nil},
		{"Default=0x7fff:ALL,SELF=full;", []string{IsolatedHost + ": no other host to talk to: 3 ports (H[2-4])"}},
		{"Default=0x7fff:ALL;", []string{
			NoFullMember + `: partition 0x7fff ("Default") has 6 limited members and no full member to talk to`,
			IsolatedHost + ": no other host to talk to: 3 ports (H[2-4])"}},
		// Full members of one partition, limited ones of two.
		{"A=1:0x100001=full;B=2:0x100003,0x100005;C=3:0x100008=full,0x100005;", []string{
			NoFullMember + `: partition 0x0002 ("B") has 2 limited members and no full member to talk to`,
			IsolatedHost + ": no other host to talk to: 1 port (H2)"}},
		// A partner in the default partition counts. The subnet manager's port counts as a partner in
		// other partitions only.
		{"Default=0x7fff:ALL,SELF=full,0x100003=full;", nil},
		{"A=1:ALL,SELF=full;", nil},
		{"Default=0x7fff:ALL=full;A=1:0x999,0x100004=full,0x888=full;", []string{
			UnknownMember + ": the fabric has none of 3 ports that partitions.conf names, such as 0x0000000000000999"}},
		{"Default=0x7fff:ALL=full;A=1:0x100004=full;", []string{
			UnknownMember + ": the fabric has no end port 0x0000000000100004, which is the GUID of a node and not of its port"}},
		{"Default=0x7fff:ALL=full;\nA=1,x:NONE;", []string{ConfReadOtherwise + `: conf:2: OpenSM knows no flag "x", and passes over it`}},
	} {
		conf := short.Must(dump.ReadPartitions("conf", []byte(c.conf)))(t)
		r := Check(&Audit{Fabric: f, Conf: conf, Name: "conf", Manager: f.CAPorts()[0]})
		var got []string
		for _, x := range r.Findings {
			got = append(got, x.Rule+": "+x.Message)
			if rule, ok := verify.FindRule(x.Rule, Rules); !ok || rule.Severity != x.Severity || x.Count == 0 {
				t.Errorf("%+v", x)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(r.Undecided) > 0 {
			t.Errorf("%s: %v %s", c.conf, r.Undecided, diff)
		}
	}
}

// Without the port of the subnet manager, tables that depend on it are undecided; all else is
// not.
func TestUnknownManager(t *testing.T) {
	f := testFabric(t)
	ports := f.CAPorts()
	const text = "Default=0x7fff:ALL,SELF=full;A=1:0x100001=full,0x100003;"
	conf := short.Must(dump.ReadPartitions("conf", []byte(text)))(t)
	tables := make([][]fabric.PKey, f.NumPorts())
	f.EndPorts(func(p fabric.PortID) { tables[p] = []fabric.PKey{0x7fff} })
	tables[ports[0]] = []fabric.PKey{0xffff, 0x8001}
	tables[ports[1]] = []fabric.PKey{0x7fff, 0x0001}
	for _, c := range []struct {
		manager   fabric.PortID
		broken    int
		undecided bool
	}{{ports[0], 0, false}, {ports[2], 2, false}, {fabric.NoPort, 0, true}} {
		r := Check(&Audit{Fabric: f, Tables: tables, Conf: conf, Name: "conf", Manager: c.manager})
		if got := len(broken(r)); got != c.broken || c.undecided != (len(r.Undecided) > 0) {
			t.Errorf("manager %d: %d findings, undecided %v", c.manager, got, r.Undecided)
		}
	}
	tables[ports[1]] = []fabric.PKey{0x7fff, 0x8001}
	if list := broken(Check(&Audit{Fabric: f, Tables: tables, Conf: conf, Name: "conf", Manager: fabric.NoPort})); len(list) != 1 || list[0].Rule != WrongMembership {
		t.Errorf("%v", list)
	}
	// A table that is not known counts for nothing, one without entries is empty, and one may
	// have a partition twice.
	tables[ports[1]], tables[ports[2]], tables[ports[3]] = nil, []fabric.PKey{}, []fabric.PKey{0x7fff, 0xffff}
	r := Check(&Audit{Fabric: f, Tables: tables, Manager: fabric.NoPort})
	if r.Counts.Ports != 5 || len(r.Counts.List) != 2 || r.Counts.List[1].Full != 2 || r.Counts.List[1].Limited != 2 {
		t.Errorf("%+v", r.Counts)
	}
	if slices.ContainsFunc(r.Findings, func(x verify.Finding) bool { return x.Rule == NoDefaultPartition }) {
		t.Error("an empty table is in no partition at all")
	}
}

// Of many findings of a rule the first are listed, and one counts the rest.
func TestManyFindings(t *testing.T) {
	f := testFabric(t)
	conf := short.Must(dump.ReadPartitions("conf", []byte(manyPartitions(verify.DefaultFindings+2))))(t)
	tables := make([][]fabric.PKey, f.NumPorts())
	for p := range tables {
		tables[p] = []fabric.PKey{0x7fff}
	}
	list := broken(Check(&Audit{Fabric: f, Tables: tables, Conf: conf, Name: "conf", Manager: f.CAPorts()[3]}))
	if n := verify.DefaultFindings; len(list) != n+2 || list[n].Rule != WrongMembership || list[n+1].Rule != Missing || list[n+1].Count != int64(n+4) {
		t.Errorf("%d findings, %+v", len(list), list[len(list)-2:])
	}
}

func TestRules(t *testing.T) {
	for _, r := range Rules {
		if r.Severity == verify.Clean || r.Count == "" || r.Summary == "" || r.Explain == "" {
			t.Errorf("rule %+v", r)
		}
	}
}
