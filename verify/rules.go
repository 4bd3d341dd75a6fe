package verify

import (
	"fmt"
	"slices"
)

// Severity grades a finding. The zero value means that there is nothing to
// grade.
type Severity uint8

// The severities, mildest first.
const (
	Clean Severity = iota
	Note
	Warning
	Error
)

var severities = [...]string{Clean: "clean", Note: "note", Warning: "warning", Error: "error"}

// String is the name in JSON and on the command line.
func (s Severity) String() string {
	if int(s) < len(severities) {
		return severities[s]
	}
	return fmt.Sprintf("severity %d", uint8(s))
}

// MarshalText is String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a severity's name.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("severity %q: want one of %v", text, severities[Note:])
	}
	*s = Severity(i)
	return nil
}

// Rule is something that tables must or should hold to.
type Rule struct {
	Name     string
	Severity Severity // of its findings
	Count    string   // what a finding's Count counts
	Summary  string   // one line
	Explain  string   // what it means on a running fabric, and what to do
}

// The names of the rules.
const (
	Partitioned             = "partitioned"
	UnicastUnreachable      = "unicast-unreachable"
	Misdelivered            = "misdelivered"
	SLDropped               = "sl-dropped"
	ManagementSLDropped     = "management-sl-dropped"
	UnicastLoop             = "unicast-loop"
	CreditLoop              = "credit-loop"
	ManagementLoop          = "management-loop"
	UnassignedLID           = "unassigned-lid"
	CertificateRule         = "certificate"
	BoundRule               = "bound"
	ManagementPartitioned   = "management-partitioned"
	ManagementUnreachable   = "management-unreachable"
	ManagementCreditLoop    = "management-credit-loop"
	ManagementUnassignedLID = "management-unassigned-lid"
	EmptyTable              = "empty-table"
	AdaptiveRouting         = "adaptive-routing"
	DeadEntry               = "dead-entry"
	StaleEntry              = "stale-entry"
	IdleLinks               = "idle-links"
	FarFromBound            = "far-from-bound"
	UnownedLIDLoop          = "unowned-lid-loop"
	FileChanged             = "file-changed"
	NonMinimal              = "non-minimal"
	MulticastMissing        = "multicast-missing"
	MulticastDuplicate      = "multicast-duplicate"
	MulticastLoop           = "multicast-loop"
	MulticastStray          = "multicast-stray"
	MulticastCreditLoop     = "multicast-credit-loop"
	MulticastCopying        = "multicast-copying"
	MulticastDeadPort       = "multicast-dead-port"
	MulticastDeadEnd        = "multicast-dead-end"
	MulticastUnused         = "multicast-unused"
	MulticastUnknown        = "multicast-unknown"
	MulticastBeyondCapacity = "multicast-beyond-capacity"
	MulticastNearlyFull     = "multicast-nearly-full"
	MulticastNoEndPort      = "multicast-no-end-port"
	MulticastMemberGone     = "multicast-member-gone"
	MulticastLoneMember     = "multicast-lone-member"
	BufferTooSmall          = "buffer-too-small"
)

// Rules lists all rules, the gravest first. Findings are sorted in this order
// within a severity.
var Rules = []Rule{
	{Partitioned, Error, "pairs", "CA or router ports cannot talk because no cables join them", `The fabric is in parts that no cable between switches joins, so that no tables can
help: look for missing cables, or for switches that are off. There is one finding,
which names the largest parts by size and by some of their switches. Its count is
the number of pairs between the parts that are unreachable; they are not listed by
LID. Pairs that cannot reach each other inside a part are findings of
unicast-unreachable, and packets that loop or arrive at a wrong port are findings of
these rules in any case.`},
	{UnicastUnreachable, Error, "pairs", "a CA or router port cannot reach a LID of another one", `A packet from the source port to the LID is dropped on the way: a switch has no
entry for the LID (255), or the entry is a port without a cable, a port that the
switch does not have, or port 0 of a switch that does not own the LID. There is
one finding for each LID. Its count is the number of source ports, and its
witness the way of one of them, up to the switch that drops the packet. Pairs that no
cables join are in partitioned instead.`},
	{Misdelivered, Error, "pairs", "packets for a LID arrive at a port that has another LID", `The last switch hands the packet to a CA or router port that does not own the
LID, which drops it. The usual cause is a table that is older than the cabling:
two cables were swapped, or LIDs were assigned again. These pairs are among the
unreachable ones. There is one finding for each LID.`},
	{SLDropped, Error, "pairs", "packets are dropped because their SL has no VL at a port on the way", `An SL-to-VL table on the way has VL 15 for the SL of the path: the port discards
the packets (IBA 7.6.6). These pairs are among the unreachable ones. There is
one finding for each LID, and its witness is the way of one of the source ports,
up to the way out with VL 15. Give the SL a VL there, or the path another SL.
Without path SLs a port may send with every SL that its own table does not drop,
and all of them must arrive. Whether a path has an SL that its own table drops is
undecided then: give path SLs.`},
	{UnicastLoop, Error, "pairs", "packets for a LID loop", `The tables send packets for the LID round a cycle of switches. InfiniBand has no
hop limit inside a subnet: they circulate until the head of queue or switch
lifetime limit drops them, and take the links from everybody else until then.
The witness is the cycle, which starts at the switch with the lowest GUID. There
is one finding for each LID.`},
	{CreditLoop, Error, "channels", "channels can wait for each other's credits in a cycle", `A packet that holds the receive buffer of one channel waits for credits of the
next one on its way. When such waits close a cycle the packets in it can stop
for good, and so does all that queues behind them. Only waits that traffic
between CA and router ports really makes are counted: dependencies that no pair
uses cannot deadlock. There is one finding for each set of channels that all
wait for each other (a strongly connected component of the channel dependency
graph, Dally and Seitz 1987), with a shortest cycle as the witness: each line
is a channel (a port and a VL), and a LID whose packets hold it while they wait
for the next one.
Use an engine that guarantees freedom from credit loops, as updn does, or
virtual lanes that break the cycle.`},
	{MulticastLoop, Error, "senders", "copies of a multicast packet loop", `A switch sends a multicast packet to all ports of the MLID's mask but the one that
it came in by. The masks lead packets of the sender round a cycle of switches,
and each switch of it goes on copying them: InfiniBand has no hop limit inside a
subnet, so that one packet is a storm for everybody. The usual cause is an MLID
that senders share whose trees do not fit together. There is one finding for each
group and MLID; its count is the number of senders, and the witness the cycle.`},
	{MulticastDuplicate, Error, "pairs", "a receiver gets several copies of a multicast packet", `Copies of one packet come to the receiver, or back to the sender, on different
ways. Applications that do not number their packets take them for different
ones. There is one finding for each group and MLID; its count is the number of
pairs of a sender and a receiver, and the witness the way of a second copy.`},
	{MulticastMissing, Error, "pairs", "a receiver gets no copy of a multicast packet", `The masks of the MLID do not lead from the sender to the receiver. There is one
finding for each group and MLID; its count is the number of pairs of a sender and
a receiver.`},
	{MulticastBeyondCapacity, Error, "MLIDs", "MLIDs are beyond the smallest multicast table", `A switch has no masks for MLIDs from 0xc000 plus its MulticastFDBCap on, and drops their
packets. A subnet manager refuses groups that it has no MLID for. Let groups share MLIDs, or
use fewer: OpenSM's consolidate_ipv6_snm_req puts IPv6's solicited-node groups together.`},
	{MulticastCreditLoop, Error, "channels", "channels of unicast and multicast traffic can wait for each other in a cycle", `As credit-loop, for unicast and multicast packets together. A multicast packet
holds the buffer that it came in by until its last copy has left, and so waits for
each of its ways out; which those are depends on where it came in. Trees that were
made without regard to the unicast routing close cycles easily, even where the
routing by itself has none. Use a scheme that keeps to the routing's own order:
updn-tree with updn, comb or union-row with xy.`},
	{MulticastCopying, Error, "channels", "copies of packets hold output ports while others wait", `The switches were said to copy packets in a way in which one copy can hold an
output port while it waits for another one: all of them reserved at once, taken
one by one, or held by the branches of a worm. Then output ports that packets
leave by together wait for each other too, and that closes a cycle, or lets two
packets hold what the other one wants. Independent copying, which is what
InfiniBand switches do, has no such rule.`},
	{UnassignedLID, Error, "ports", "a CA or router port with a cable has no LID", `No port can send to it, and a clean result would say nothing about it.
Assign LIDs before the tables are made.`},
	{ManagementLoop, Error, "pairs", "management packets for a LID loop", `As unicast-loop, for packets from port 0 of a switch to any LID, or from any
port to the LID of a switch. A subnet manager or performance manager that polls
a switch starts such a storm.`},
	{CertificateRule, Error, "dependencies", "the certificate does not hold for these tables", `A certificate gives each channel a number, and the number must increase along
every dependency that the traffic makes. It belongs to other cabling, or the
tables have changed since, or it was damaged. Check without it, and take a new
one if the tables are clean.`},
	{BoundRule, Error, "bounds", "a lower bound of the load is not proven", `The file of --bound says that no forwarding tables have a greatest load below a bound,
and gives channels lengths, from which that follows. It does not follow: the file is
for another fabric, or for other rates, hosts or LMCs, or it was changed. Write it again with
--write-bound. docs/dev/bound.md says what it proves.`},
	{FileChanged, Error, "files", "a file of a compiled directory is not as compile wrote it", `The manifest of the directory has the SHA-256 of every file. A file that the audit does
not read (guid2lid, the lid matrix, partitions.conf, configurations) is changed or
missing: OpenSM loads something else than what was proved, and with another guid2lid all
LIDs may be others. Compile again, or bring the file back. Where the audit has read and
judged the file as it is now, the finding is a warning.`},
	{ManagementPartitioned, Warning, "pairs", "switches and other ports cannot talk because no cables join them", `As partitioned, for packets from port 0 of a switch to any LID, or from any port to
the LID of a switch.`},
	{ManagementUnreachable, Warning, "pairs", "a switch's port 0 and another port cannot talk", `Packets from port 0 of a switch to the LID are dropped, or packets from a CA to
the LID of a switch. Subnet management itself uses directed routes and still
works, but everything on LID routes does not: performance counters (PerfMgt),
baseboard management, traps, SA queries from a manager on a switch. There is
one finding for each LID.`},
	{ManagementSLDropped, Warning, "pairs", "management packets are dropped because their SL has no VL", `As sl-dropped, for packets from port 0 of a switch to any LID, or from any port
to the LID of a switch.`},
	{ManagementCreditLoop, Warning, "channels", "management traffic closes a cycle of credits", `Traffic between CAs alone has no such cycle, but together with packets to and
from port 0 of switches there is one. On VL15 management packets need no
credits; performance management and SA queries (GMPs) take a data VL. They are
rare and small, so such a loop hardly ever stops a fabric, but nothing rules it
out. An engine that guarantees freedom from credit loops avoids it.`},
	{ManagementUnassignedLID, Warning, "ports", "port 0 of a switch has no LID", `The subnet manager reaches the switch by directed routes only; no packet with a LID comes to its port 0.`},
	{EmptyTable, Warning, "switches", "a switch has no forwarding entries at all", `Every entry of the switch is 255. If the switch forwards packets then its table
is missing from the dump; otherwise it was just brought up, or is cut off from
the subnet manager.`},
	{AdaptiveRouting, Warning, "switches", "adaptive routing is on: the forwarding table is not the whole path", `The dump names several forwarding tables (PLFT) for a switch. What was checked is
one of them: packets that take another are not covered, so that there can be no
clean verdict without every table.`},
	{FarFromBound, Warning, "routes", "the busiest cable has far more load than it need have", `The greatest relative load of the tables is far above a proven lower bound, below which no
tables are (docs/bound.md): a note where it is more than a quarter above; a warning where
it is more than a half above in a tree. Other tables may do better, though not always as well
as the bound. The count is the routes by which the load is above the bound. There is no
finding where only cuts were tried and the fabric is no tree, since better bounds are likely
there. compile without -e tries several engines and takes the best; compare puts tables side
by side. On rings, tori and the like an engine with more virtual lanes helps.`},
	{MulticastStray, Warning, "pairs", "an end port gets copies of multicast packets that it does not want", `The end port is no receiver of the group, and the masks of the MLID lead to it.
Its adapter discards the packets by their MGID, but its link carries them. Groups
that share an MLID for want of others do that on purpose. There is one finding for
each group and MLID.`},
	{UnownedLIDLoop, Warning, "LIDs", "packets for a LID that no port has loop", `The tables have entries for the LID, and those of some switches lead round a cycle.
Any host that addresses the LID, of its own accord or because it remembers a port that
is gone, fills the links of the cycle until the lifetime limit of the switches drops
the packets. The witness is the cycle, which starts at the switch with the lowest
GUID. There is one finding for each LID. A subnet manager clears such entries when it
routes again.`},
	{MulticastDeadPort, Warning, "MLIDs", "a multicast mask has a port without a cable", `The switch makes copies for a port that is down. They are dropped, and the port
hides a change of cables since the masks were made.`},
	{MulticastNearlyFull, Warning, "MLIDs", "the multicast tables are nearly full", `Nine tenths or more of the MLIDs that the smallest multicast table of the fabric has room
for are in use. When none is left the subnet manager refuses to create groups: hosts that
come up get no IPoIB. Each host with IPv6 over IPoIB makes groups of its own; OpenSM's
consolidate_ipv6_snm_req lets these share MLIDs.`},
	{MulticastNoEndPort, Warning, "MLIDs", "multicast masks lead to no end port", `No mask of the MLID has port 0 of a switch or a port with a cable to an adapter: its members
are gone or their cables are down, and the MLID and its tree are still in the tables. A heavy
sweep of the subnet manager clears them.`},
	{MulticastMemberGone, Warning, "members", "multicast groups have members that the fabric lacks", `The subnet manager's list has members whose ports are not in the topology: the hosts are down,
or came up after the topology was read. OpenSM drops members when it finds their ports gone.
There is one finding, with the first of them.`},
	{BufferTooSmall, Warning, "bytes", "a receive buffer does not hold a packet", `The proof that there is no credit loop rests on virtual cut-through: a switch takes
in a whole packet on each VL before it waits. A VL with fewer credits than a packet
of the MTU needs makes packets wait across several links, as worms do, and then
copies of one packet can stop each other.`},
	{MulticastUnused, Note, "ports", "no packets reach some ports of multicast masks", `No sender's packets come to these switches, or none by another port. They do no harm
until somebody else sends, or a port is added elsewhere. There is one finding for each
MLID.`},
	{MulticastUnknown, Note, "MLIDs", "there are multicast masks for an MLID without known senders", `It is not known which ports send on the MLID. All end ports in its masks were taken to send and
to receive.`},
	{MulticastLoneMember, Note, "groups", "multicast groups have one member", `The member has no other to send to, and OpenSM makes no tree for it; the group has an MLID
all the same. IPv6 over IPoIB makes such a group for each address of a host
(solicited-node groups). There is one finding, with the first of them.`},
	{MulticastDeadEnd, Note, "MLIDs", "a multicast mask leads to a switch that has no port to pass packets on to", `The switch at the other end of the cable has no other port in its mask for the
MLID: copies cross the cable and are dropped. Trees that have a link in both directions
for a member that only sends do that.`},
	{DeadEntry, Note, "LIDs", "a forwarding entry leads nowhere", `The entry of an assigned LID is a port without a cable, a port that the switch
does not have, or port 0 of another switch. Pairs whose packets meet the entry
have findings of their own. There is one finding for each switch and port; its
count is the number of LIDs.`},
	{StaleEntry, Note, "switches", "there are forwarding entries for a LID that no port has", `The port is gone or has another LID now; packets for the LID arrive nowhere. A
subnet manager clears such entries when it routes again. Where
the topology has no port for the LID at all, it may just as well be a LID of a port
that the topology does not tell: what becomes of its packets is undecided.
There is one finding for each LID; its count is the number of switches.`},
	{IdleLinks, Note, "channels", "cables between switches carry nothing", `No packet between hosts takes the cable in this direction, though it is on a shortest
path of some of them. A few such channels are normal: up*/down* routing turns away
from some cables, and a leaf with fewer hosts than cables need not use all. It is a warning
when the tables use less than three fifths of the channels that they could: then a slow or a single
cable draws paths to itself, roots are chosen badly, or cables were added since the
tables were made. Compare another engine (ibweave compare), or give --roots. Cables
that no shortest path needs do not count, as one between two spines.`},
	{NonMinimal, Note, "pairs", "some packets pass more switches than they need to", `Deadlock-free routing often has to take longer ways; count says how many pairs
do. The witness is the pair that goes farthest out of its way.`},
}

// LaneRules are those that rest on SL-to-VL tables and path SLs, gravest first.
var LaneRules = []string{SLDropped, CreditLoop, ManagementSLDropped, ManagementCreditLoop}

// MulticastRules are those that rest on the masks and groups of multicast, gravest first.
var MulticastRules = []string{MulticastLoop, MulticastDuplicate, MulticastMissing, MulticastCreditLoop}

// UnicastRules are those that rest on the topology and the forwarding tables, gravest
// first.
var UnicastRules = []string{UnicastUnreachable, Misdelivered, UnicastLoop, CreditLoop, ManagementLoop}

// RuleByName finds a rule of this package.
func RuleByName(name string) (*Rule, bool) { return FindRule(name, Rules) }

// FindRule finds a rule in some lists of rules.
func FindRule(name string, lists ...[]Rule) (*Rule, bool) {
	for _, rules := range lists {
		for i := range rules {
			if rules[i].Name == name {
				return &rules[i], true
			}
		}
	}
	return nil, false
}

// ruleIndex is the position in Rules, len(Rules) when there is no such rule.
func ruleIndex(name string) int {
	for i := range Rules {
		if Rules[i].Name == name {
			return i
		}
	}
	return len(Rules)
}
