package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// hop is a line of ibtracert, [1] -> switch 0x200005[3] lid 6 "switch 1,1", or of
// ibtracert by unicast, [1] -> switch port {0x0000000000200005}[3] lid 6-6 "switch 1,1".
var hop = regexp.MustCompile(`(?m)^\[(\d+)\] -> (?:switch|ca) (?:port \{)?0x([0-9a-f]+)\}?\[\d+\]`)

// trace is the ports of switches by which ibtracert says that a packet leaves, and
// the node at the end.
func (s *testbed) trace(t *testing.T, from, to fabric.PortID, args ...string) (out []fabric.PortID, end fabric.NodeID) {
	t.Helper()
	text := s.run(t, "ibtracert", append(args, strconv.Itoa(int(s.f.LID(from))), strconv.Itoa(int(s.f.LID(to))))...)
	// By unicast nodes are named by the GUID of the port.
	byPort := make(map[fabric.GUID]fabric.NodeID)
	s.f.EndPorts(func(p fabric.PortID) { byPort[s.f.PortGUID(p)] = s.f.Owner(p) })
	end = s.f.Owner(from)
	for _, m := range hop.FindAllStringSubmatch(text, -1) {
		num := short.Must(strconv.ParseUint(m[1], 10, 8))(t)
		if s.f.IsSwitch(end) {
			out = append(out, s.f.Port(end, fabric.PortNum(num)))
		}
		guid := short.Must(strconv.ParseUint(m[2], 16, 64))(t)
		node, ok := s.f.NodeByGUID(fabric.GUID(guid))
		if !ok {
			if node, ok = byPort[fabric.GUID(guid)]; !ok {
				t.Fatalf("no node %s\n%s", m[2], text)
			}
		}
		end = node
	}
	return out, end
}

// Programs that know nothing of us agree on what OpenSM and the switches have:
// saquery on the group and its members, dump_mfts on the masks, and ibtracert on
// the paths, by multicast and by unicast.
func TestToolsAgree(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: short.Of([]int{4, 4}, []int{3, 3}), Hosts: 1})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-xy", "")
	r := s.compiled(t, "xy", compile.Options{Multicast: "comb", Groups: func(f *fabric.Fabric) ([]mft.Group, error) {
		p := f.CAPorts()
		three := []fabric.PortID{p[0], p[6], p[len(p)-2]} // ibsim cuts answers off after three records
		return []mft.Group{{Name: "three", Receivers: three, Senders: three}}, nil
	}})
	tree := &r.Plan.Trees[0]
	transport := short.Must(s.Dial(t.Context(), ""))(t)
	c := subnet.New(transport, subnet.Options{})
	defer c.Close()
	m := short.Must(c.Manager(t.Context()))(t)
	for _, p := range tree.Receivers {
		short.Must(c.Join(t.Context(), m, subnet.Membership{MGID: tree.MGID, MLID: tree.MLID, Port: s.f.PortGUID(p), State: mad.FullMember}))(t)
	}
	groups, problems, err := dump.ReadSAQuery("saquery", []byte(s.run(t, "saquery", "--smkey", "1", "-m")), s.f, dump.Options{})
	if err != nil || len(problems) > 0 || len(groups) != 1 {
		t.Fatalf("%v %v %v", groups, problems, err)
	}
	if g := &groups[0]; g.MGID != tree.MGID || g.MLID != tree.MLID || !slices.Equal(g.Senders, tree.Senders) || !slices.Equal(g.Receivers, tree.Receivers) {
		t.Errorf("saquery has %+v, want %+v", g, tree)
	}
	// OpenSM answers before it writes masks.
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		read, problems, err := dump.ReadMFTs("dump_mfts", []byte(s.run(t, "dump_mfts")), s.f, dump.Options{})
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		if slices.Equal(read.MLIDs(), r.Plan.Tables.MLIDs()) && slices.Equal(read.Ports(tree.MLID), r.Plan.Tables.Ports(tree.MLID)) {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("switches have the masks %v, want %v\n%s", portNames(s.f, read.Ports(tree.MLID)), portNames(s.f, r.Plan.Tables.Ports(tree.MLID)), d.log())
		}
	}
	masks := r.Plan.Tables.Ports(tree.MLID)
	used := make(map[fabric.PortID]bool)
	for _, from := range tree.Senders {
		for _, to := range tree.Receivers {
			if from == to {
				continue
			}
			out, end := s.trace(t, from, to, "-m", fmt.Sprintf("%#x", uint16(tree.MLID)))
			if end != s.f.Owner(to) {
				t.Errorf("ibtracert comes from %s to %q, want %s", s.f.PortName(from), s.f.Node(end).Description, s.f.PortName(to))
			}
			for _, p := range out {
				used[p] = true
				if !slices.Contains(masks, p) {
					t.Errorf("ibtracert leaves by %s, which is in no mask", s.f.PortName(p))
				}
			}
			out, end = s.trace(t, from, to)
			if end != s.f.Owner(to) || len(out) == 0 {
				t.Errorf("ibtracert comes from %s to %q by unicast, want %s", s.f.PortName(from), s.f.Node(end).Description, s.f.PortName(to))
			}
			for _, p := range out {
				if got := r.Routing.Tables.Row(s.f.Owner(p))[s.f.LID(to)]; got != s.f.Num(p) {
					t.Errorf("ibtracert leaves to %s by %s, want port %d", s.f.PortName(to), s.f.PortName(p), got)
				}
			}
		}
	}
	if len(used) != len(masks) {
		t.Errorf("ibtracert uses %d ports, the masks have %d", len(used), len(masks))
	}
}
