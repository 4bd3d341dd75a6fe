package fabric

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a node is for. The type of a node is how it
// is built; nodes of several kinds are channel adapters.
type Kind uint8

// The kinds.
const (
	HostKind        Kind = iota // a computer that runs jobs, and any node of no other kind
	AggregationKind             // a SHARP aggregation node, which is part of a switch
	RouterKind                  // a router between subnets
	ServiceKind                 // storage, and hosts that run the fabric
	GatewayKind                 // a gateway to another network
	SwitchKind                  // a switch, whose port 0 has its LID
)

var kindNames = [...]string{"host", "aggregation", "router", "service", "gateway", "switch"}

// String is the name of a kind: "aggregation".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Kind is what node n is for. By default that follows from
// the node's data:
//
//   - Switches and routers are what their types say.
//   - An aggregation node is a channel adapter with one port that describes itself as
//     one, has the device ID of one, or has the system image GUID of a switch whose last
//     port it is cabled to. An adapter on another port of such a switch is a host.
//   - A gateway or service node is a channel adapter whose description begins with a
//     host name that has a word for it: "gw3 mlx5_0", "rack2-oss01 mlx5_0". If that were
//     half of them or more, as in a fabric for storage, all are hosts.
//   - Everything else is a host.
func (f *Fabric) Kind(n NodeID) Kind { return f.kinds[n] }

// Use is a purpose for which nodes count or do not count, by kind. Uses are bits.
type Use uint8

// The uses.
const (
	// ForLoad: routes to and from the node count as load, which engines balance over the cables.
	// Engines may add a virtual lane for their sake.
	ForLoad Use = 1 << iota
	// ForShape: a switch with such nodes is a leaf.
	ForShape
	// ForBisection: the node is in the halves of a bisection.
	ForBisection
)

// uses has, by kind, what nodes count for.
var uses = [...]Use{
	HostKind:        ForLoad | ForShape | ForBisection,
	AggregationKind: 0,
	RouterKind:      ForLoad,
	ServiceKind:     ForLoad,
	GatewayKind:     ForLoad,
	SwitchKind:      0,
}

// Counts returns true if nodes of kind k count for use u.
func (k Kind) Counts(u Use) bool { return uses[k]&u != 0 }

// PortCounts returns true if the node of port p counts for use u.
func (f *Fabric) PortCounts(p PortID, u Use) bool { return f.kinds[f.owner[p]].Counts(u) }

// indexHosts fills in what the kinds of all nodes, by NodeID, and the cables determine.
func (f *Fabric) indexHosts(kinds []Kind) {
	f.hosts = &hosts{kinds: kinds, firstHost: make([]int32, f.switches+1), hosts: make([]PortID, 0, len(f.ends))}
	for s := range NodeID(f.switches) {
		for _, p := range f.EndPortsOn(s) {
			if f.PortCounts(p, ForLoad) {
				f.hosts.hosts = append(f.hosts.hosts, p)
			}
		}
		f.firstHost[s+1] = int32(len(f.hosts.hosts))
	}
}

// findKinds finds the kinds of all nodes by the default rule.
func (f *Fabric) findKinds() []Kind {
	kinds := make([]Kind, len(f.nodes))
	all, others := 0, 0 // hosts, and those of another kind by name
	for n := range f.nodes {
		switch node := &f.nodes[n]; {
		case node.Type == Switch:
			kinds[n] = SwitchKind
		case node.Type == Router:
			kinds[n] = RouterKind
		case f.isAggregation(NodeID(n)):
			kinds[n] = AggregationKind
		default:
			kinds[n] = kindByName(node.Description)
			all++
			if kinds[n] != HostKind {
				others++
			}
		}
	}
	if 2*others >= all {
		for n, k := range kinds {
			if k == ServiceKind || k == GatewayKind {
				kinds[n] = HostKind
			}
		}
	}
	return kinds
}

// How aggregation nodes identify themselves. The device ID is the same on
// Switch-IB 2, Quantum and Quantum-2 switches.
const (
	aggregationName   = "Aggregation Node"
	aggregationDevice = 0xcf09 // 53001
	mellanox          = 0x2c9  // vendor with this device ID
)

// isAggregation returns true if a channel adapter is an aggregation node.
func (f *Fabric) isAggregation(n NodeID) bool {
	node := &f.nodes[n]
	if node.NumPorts != 1 {
		return false
	}
	if strings.Contains(node.Description, aggregationName) || node.VendorID == mellanox && node.DeviceID == aggregationDevice {
		return true
	}
	port := f.Port(n, 1)
	s := f.PeerSwitch(port)
	return s != NoNode && node.SystemGUID != 0 && node.SystemGUID == f.nodes[s].SystemGUID && f.Num(f.peer[port]) == f.nodes[s].NumPorts
}

// kindWords are the words of host names that tell a kind.
var kindWords = map[string]Kind{
	"gateway": GatewayKind, "gw": GatewayKind, "lnet": GatewayKind, "skyway": GatewayKind,
	"beegfs": ServiceKind, "ddn": ServiceKind, "gpfs": ServiceKind, "lustre": ServiceKind,
	"mds": ServiceKind, "mgs": ServiceKind, "nsd": ServiceKind, "oss": ServiceKind,
	"storage": ServiceKind, "ufm": ServiceKind, "weka": ServiceKind,
}

// kindByName returns the kind by the host name of a description,
// which ends at the first blank. Its words are runs of letters.
func kindByName(description string) Kind {
	host, _, _ := strings.Cut(description, " ")
	for word := range strings.FieldsFuncSeq(host, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) {
		if k, ok := kindWords[strings.ToLower(word)]; ok {
			return k
		}
	}
	return HostKind
}

// KindRule gives a kind to channel adapters and routers.
type KindRule struct {
	Kind    Kind
	Pattern string // a GUID of the node, or a pattern of its name: * stands for any text
}

// ParseKindRules reads rules such as "service=oss*,host=0x2c903000abcd": each is a kind, and a
// pattern for names or a GUID. Errors say what is allowed.
func ParseKindRules(s string) ([]KindRule, error) {
	var list []KindRule
	for rule := range strings.SplitSeq(s, ",") {
		name, pattern, ok := strings.Cut(strings.TrimSpace(rule), "=")
		k := slices.Index(kindNames[:SwitchKind], name)
		if !ok || pattern == "" || k < 0 {
			return nil, fmt.Errorf("kind %q: want KIND=PATTERN, where KIND is one of %s and PATTERN a GUID or a name with * for any text", rule, strings.Join(kindNames[:SwitchKind], ", "))
		}
		list = append(list, KindRule{Kind(k), pattern})
	}
	return list, nil
}

// WithKinds returns the same subnet, in which a node has the kind of the last rule that
// it matches. Switches stay switches. unused lists the rules that no node matches.
func (f *Fabric) WithKinds(rules []KindRule) (g *Fabric, unused []KindRule) {
	kinds := slices.Clone(f.kinds)
	for _, r := range rules {
		guid, err := ParseGUID(r.Pattern)
		fits := func(n NodeID) bool { return f.nodes[n].GUID == guid }
		if err != nil || !strings.HasPrefix(r.Pattern, "0x") {
			like, err := regexp.Compile("^(?s:" + strings.ReplaceAll(regexp.QuoteMeta(r.Pattern), `\*`, ".*") + ")$")
			fits = func(n NodeID) bool { return err == nil && like.MatchString(f.Name(n).Text) } // err: no UTF-8, too long
		}
		used := false
		for n := NodeID(f.switches); int(n) < len(f.nodes); n++ {
			if fits(n) {
				kinds[n], used = r.Kind, true
			}
		}
		if !used {
			unused = append(unused, r)
		}
	}
	c := *f
	c.indexHosts(kinds)
	return &c, unused
}
