package partitions

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
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

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// live is OpenSM's work: a fabric on ibsim, and the tables that OpenSM wrote by a file.
type live struct {
	sim    *ibsim.Sim
	client *subnet.Client
	d      *subnet.Discovery
}

func start(t *testing.T) *live {
	t.Helper()
	data := short.Must(os.ReadFile("testdata/fabric.ibnetdiscover"))(t)
	f, _ := short.Must2(topology.Parse("fabric", data, topology.Options{}))(t)
	sim, _ := ibsimtest.Start(t, f)
	conn := short.Must(sim.Dial(t.Context(), ""))(t)
	c := subnet.New(conn, subnet.Options{Timeout: 10 * time.Second})
	t.Cleanup(func() {
		short.Check(t, c.Close())
	})
	d := short.Must(c.Discover(t.Context()))(t)
	return &live{sim, c, d}
}

// write returns the tables that OpenSM writes for a partitions.conf, and true if OpenSM refused it.
func (l *live) write(t *testing.T, conf string, options ...string) (tables [][]fabric.PKey, refused bool) {
	t.Helper()
	short.NeedPrograms(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "conf")
	short.Check(t, os.WriteFile(name, []byte(conf), 0o600))
	short.Must(ibsim.RunOpenSM(t.Context(), l.sim, ibsim.OpenSMConfig{Dir: dir, Options: append(options, "partition_config_file "+name),
		Line: func(line ibsim.LogLine) {
			refused = refused || strings.Contains(line.Message, "retrying with default config")
		}}))(t)
	tables, problems, _, err := l.client.PKeys(t.Context(), l.d)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	return tables, refused
}

// audit holds tables to a file.
func (l *live) audit(tables [][]fabric.PKey, conf *dump.PartitionsConf) *Result {
	return Check(&Audit{Fabric: l.d.Fabric, Tables: tables, Conf: conf, Name: "conf", Manager: l.d.Local})
}

// broken lists the findings that tables are not what a file asks for.
func broken(r *Result) (list []verify.Finding) {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f verify.Finding) bool {
		return f.Rule != Missing && f.Rule != Unexpected && f.Rule != WrongMembership
	})
}

// hold compares the tables that we and OpenSM make of a file. It returns true if OpenSM takes
// the file.
func (l *live) hold(t *testing.T, conf string) bool {
	t.Helper()
	tables, refused := l.write(t, conf)
	c, err := dump.ReadPartitions("conf", []byte(conf))
	if err != nil {
		var parse *fabric.ParseError
		if !refused || !errors.As(err, &parse) {
			t.Errorf("%q: %v, and OpenSM takes it", conf, err)
		}
		return false
	}
	if slices.ContainsFunc(c.Oddities, func(o dump.Oddity) bool { return strings.Contains(o.Text, "begins with a semicolon") }) {
		return true // it takes it or not
	}
	empty := slices.ContainsFunc(c.Oddities, func(o dump.Oddity) bool { return strings.HasPrefix(o.Text, "no partition is defined") })
	short.Equal(t, refused, empty, conf, "OpenSM refuses it")
	if list := broken(l.audit(tables, c)); len(list) > 0 {
		t.Errorf("%q: %v\n%s", conf, tables, list[0].Message)
	}
	return true
}

// manyPartitions is a file with n partitions of a host.
func manyPartitions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "P%d=%d:0x100001=full,0x100003;\n", i, i+1)
	}
	return b.String()
}

// The tables that the real OpenSM writes are those that we read out of its file, and it refuses
// the files that we refuse. The ports of hosts are 0x100001, 0x100003, 0x100005 and 0x100008.
func TestOpenSM(t *testing.T) {
	l := start(t)
	cases := []string{
		"",
		"# nothing\n",
		"Default=0x7fff : ALL=full;\n",
		"A=0x1 : 0x100001=full;\n",
		"Default=0x7fff : ALL, SELF=full;\nA=0x8010, ipoib, defmember=full : 0x100001, 0x100003=limited,\n  0x100005 ; # comment; here\nB : ALL_SWITCHES=full, ALL_CAS;\nB : 0x100005=full;",
		"Default=0x7fff,ipoib:\n mgid=ff12:401b::0707,sl=1 # group\n mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2\n ALL=full;",
		"A=1:0x100001=full, ALL;\nA=1:0x100003=fu,0x100005=,0x100008=junk,NONE;",
		"A:ALL=full;B:ALL;A:0x100001;0x20:SELF;,ipoib:0x100003=full;", // the third has a number for a name
		"A=1:ALL_SWITCHES=both,0x100001=both,ALL_R=full,S;",
		"A=010:1048577=full;", // octal and decimal
		"A=0x18001:ALL=full;", // more than 16 bits
		"A=1,unknown,mtu,defmember=x:ALL;",
		"A=1:ALL\n,\n,0x100001=full\n",
		manyPartitions(40), // in two blocks of a table
		// Refused.
		"Default=0x7fff : ALL=full;\r\nA=1:0x100001;\r\n",
		"A=1 ALL;",
		"A=1,\nipoib:ALL;",
		"A=x:ALL;",
		"A=1:ALL;;",
		"A=1:ALL\n; B=2:ALL;",
		"A=1:mgid=fe80::1,sl=1;",
		"A=1:mgid=fe80::1,sl=1\nALL;",
		"A=1:mgid=fe80::1;",
		"A=1:0x10000g;",
		"A=1:0;",
		"A=1:H1;",
		"A=:ALL;",
		"A=1:ALL; B",
		"A=1:0x100001=full; # " + strings.Repeat("x", 5000) + "\n",                                    // cut in the comment
		"A=1:0x100001=full, " + strings.Repeat(" ", 4070) + "0x100003=full;\nB=2:ALL;\n",              // cut in a GUID
		"A=1:0x100001=full, " + strings.Repeat(" ", 4080) + "0x100003=full, 0x100005=full;\nB=2:ALL;", // cut between ports
		"A=1:" + strings.Repeat(" ", 4083) + "0x100001=full;",                                         // cut in front of the last digit
	}
	for _, conf := range short.Part(3, cases) {
		l.hold(t, conf)
	}
}

// OpenSM can be told to make full and limited members of a port at once.
func TestBoth(t *testing.T) {
	l := start(t)
	const conf = "Default=0x7fff:ALL=full;A=1:0x100001=both,0x100003=full,0x100005=both;A=1:0x100005;"
	c := short.Must(dump.ReadPartitions("conf", []byte(conf)))(t)
	tables, _ := l.write(t, conf, "allow_both_pkeys TRUE")
	if r := l.audit(tables, c); len(broken(r)) > 0 || !slices.Contains(tables[l.d.Fabric.CAPorts()[0]], 0x8001) || !slices.Contains(tables[l.d.Fabric.CAPorts()[0]], 0x0001) {
		t.Errorf("%v %v", tables, r.Findings)
	}
}

// Random files, of the words that files have.
func TestOpenSMRandom(t *testing.T) {
	l := start(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	n, taken := short.Of(100, 4), 0
	for range n {
		var b strings.Builder
		for range 1 + random.IntN(5) {
			b.WriteString(pick("Default=0x7fff", "A=0x1", "B", "C", "0x30", "A", "D=0x8001", "") + pick("", "", ",ipoib", ",defmember=full", ",defm=both", ", indx0", ",x", ",sl=3") + pick(":", " : ", ":\n"))
			for i := range random.IntN(5) {
				if i > 0 {
					b.WriteString(pick(",", ", ", ",\n  ", " ,"))
				}
				b.WriteString(pick("ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "0x100001", "0x100003", "0x100005", "0x100008", "0x999", "NONE", "ALL_", pick("S", "NO", "AL", "al")) +
					pick("", "", "=full", "=limited", "=both", "=f", "=", " = full", "=junk"))
			}
			b.WriteString(pick(";", ";\n", " ;\n\n", "; # x\n", ";", ";\n", " ;\n", pick("", ";;", "\n;\n", "\n ;\n", "\n  ; # x\n", "\n          ;\n")))
		}
		if l.hold(t, b.String()) {
			taken++
		}
	}
	if !testing.Short() && (taken < n/4 || taken > 3*n/4) {
		t.Errorf("OpenSM takes %d of %d files: the rest of them says little", taken, n)
	}
}

// An entry that somebody changed is found, whatever the change.
func TestChangedEntry(t *testing.T) {
	l := start(t)
	const conf = "Default=0x7fff : ALL, SELF=full;\nA=0x10 : 0x100001=full, 0x100003=full, 0x100005, 0x100008;\n"
	tables, _ := l.write(t, conf)
	c := short.Must(dump.ReadPartitions("conf", []byte(conf)))(t)
	if list := broken(l.audit(tables, c)); len(list) > 0 {
		t.Fatal(list[0].Message)
	}
	f := l.d.Fabric
	for i, p := range f.CAPorts() {
		s := f.PeerSwitch(p)
		to := subnet.Target{Route: append(slices.Clone(l.d.Routes[s]), f.Num(f.Peer(p)))}
		data := short.Must(l.client.Get(t.Context(), to, mad.AttrPKeyTable, 0))(t)
		at := slices.Index(tables[p], 0x10|fabric.FullMember)
		if at < 0 {
			at = slices.Index(tables[p], 0x10)
		}
		was := [2]byte(data[2*at:])
		for _, change := range []struct {
			to   [2]byte
			want []string
		}{
			{[2]byte{was[0] ^ 0x80, was[1]}, []string{WrongMembership}},
			{[2]byte{0, 0}, []string{Missing}},
			{[2]byte{0x80, 0x11}, []string{Missing, Unexpected}},
		} {
			copy(data[2*at:], change.to[:])
			short.Must(l.client.SMP(t.Context(), to, mad.Set, mad.AttrPKeyTable, 0, &data))(t)
			now, _, _, err := l.client.PKeys(t.Context(), l.d)
			short.Check(t, err)
			var got []string
			for _, x := range broken(l.audit(now, c)) {
				got = append(got, x.Rule)
				if x.Count != 1 || len(x.Ports) != 1 || x.Ports[0] != verify.EndpointOf(f, p) {
					t.Errorf("host %d, %x: %s", i, change.to, x.Message)
				}
			}
			short.EqualList(t, got, change.want, "host", i, change.to, "rules")
		}
		copy(data[2*at:], was[:])
		short.Must(l.client.SMP(t.Context(), to, mad.Set, mad.AttrPKeyTable, 0, &data))(t)
	}
}
