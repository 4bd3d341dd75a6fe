package cabling

import (
	"slices"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	SplitFabric       = "split-fabric"
	MissingSwitch     = "missing-switch"
	MissingNode       = "missing-node"
	MissingCable      = "missing-cable"
	MovedCable        = "moved-cable"
	CrossedCables     = "crossed-cables"
	SwappedHosts      = "swapped-hosts"
	ExtraCable        = "extra-cable"
	ExtraNode         = "extra-node"
	ReplacedNode      = "replaced-node"
	WrongShape        = "wrong-shape"
	LinkBelowRequired = "link-below-required"
	LinkDegraded      = "link-degraded"
	DuplicateGUID     = "duplicate-guid"
	DuplicateName     = "duplicate-description"
	IsolatedNode      = "isolated-node"
	PortDown          = "port-down"
	HostOnSpine       = "host-on-spine"
	UnevenUplinks     = "uneven-uplinks"

	UnevenPlanes       = "uneven-planes"
	MissingAggregation = "missing-aggregation-node"
)

// Rules lists the rules about cables and nodes, and after them those about rails, the gravest first.
var Rules = slices.Concat([]verify.Rule{
	{Name: SplitFabric, Severity: verify.Error, Count: "nodes", Summary: "the fabric is in several pieces that no cables join", Explain: `Some nodes cannot reach the others whatever the forwarding tables say. There is one
finding for each piece but the largest, which names one of its switches; nodes
without any cable are isolated-node. A piece that cables which are missing by the
expected topology would join is no finding of its own: missing-cable has it.`},
	{Name: WrongShape, Severity: verify.Error, Count: "switches", Summary: "the fabric does not have the shape that the policy says", Explain: `The policy says by a generator line what the fabric should be, and what was found
is something else or has other sizes. A fabric that lacks some cables and switches of
the shape still has it: these are missing-cable and missing-switch.`},
	{Name: DuplicateGUID, Severity: verify.Error, Count: "ports", Summary: "several ports have one GUID", Explain: `A GUID must be unique: the subnet manager assigns LIDs, partitions and virtual lanes
by port GUID. Two ports of one adapter may have one GUID on some hardware only by
mistake of its firmware; two nodes with one GUID are usually a cloned or wrongly
flashed adapter. Reading a topology in which two nodes have one node GUID fails.`},
	{Name: MissingSwitch, Severity: verify.Error, Count: "switches", Summary: "a switch of the recognized shape is not there", Explain: `The switches and cables that are there are a grid with a hole. The finding names the
coordinates of the hole, and its ports are those of the neighbours that would lead
there. The cables of a missing switch are no findings of their own.`},
	{Name: MissingNode, Severity: verify.Error, Count: "cables", Summary: "a node of the expected topology is not there", Explain: `The expected topology has a node with this GUID, or a cabling plan one of this
name, and the fabric has none: it is switched off, or all its cables are unplugged, so
that discovery did not find it. Its cables are no findings of their own; count says how
many it should have. The ports are those of the neighbours that should lead to it.`},
	{Name: MissingCable, Severity: verify.Error, Count: "cables", Summary: "a cable is missing", Explain: `With an expected topology: both ports are named, and neither has a cable now.
Without one, the fabric was recognized as a shape (a fat tree, a grid, a shufflenet)
of which some cables are not there. The pair of switches is certain. The port numbers
are those that the other switches use in this place; a port without a number could not
be told. Count is the number of parallel cables between the two. Where the shape is a
guess, all of these are one note.`},
	{Name: MovedCable, Severity: verify.Error, Count: "cables", Summary: "one end of a cable is in another port than it should be", Explain: `The first port is the end that stayed, the second one is where the other end should
be, the third one is where it is. The message says which plugs to move.`},
	{Name: CrossedCables, Severity: verify.Error, Count: "cables", Summary: "cables are exchanged", Explain: `Two cables, or more, lead to each other's ports. The ports are all ends. Without an
expected topology this is told from the shape: two pairs of switches lack a cable and
the two other pairs of the same four switches have one too many.`},
	{Name: SwappedHosts, Severity: verify.Error, Count: "cables", Summary: "two hosts are in each other's places", Explain: `Two channel adapters are cabled to each other's switch ports. Where host names follow
the position, jobs are placed by a wrong picture of the fabric. The ports are those of
the two adapters and of the switches. Of adapters with several ports each exchange is one finding.`},
	{Name: LinkBelowRequired, Severity: verify.Error, Count: "cables", Summary: "a link is narrower or slower than the policy wants", Explain: `The policy requires a width or a speed of this kind of link, between switches or to
hosts, and the port negotiated less. The finding names both ends. Reseat or replace
the cable; look at symbol errors on both ports.`},
	{Name: LinkDegraded, Severity: verify.Warning, Count: "cables", Summary: "a link is narrower or slower than it should be", Explain: `With an expected topology: the link there is wider or faster. Without one: both ends
have other links that are wider or faster, those of other planes among them, or the same kind of
link (by vendor and device ID of both ends) usually is. A 4x link that came up as 1x still passes every
test of reachability, and everything that is routed over it waits for it.`},
	{Name: ExtraCable, Severity: verify.Warning, Count: "cables", Summary: "a cable is there that should not be", Explain: `With an expected topology: neither end has a cable there. Without one: the cable joins
two switches that are no neighbours in the recognized shape, or is one more than the
other pairs of switches have. Loops of this kind close credit loops easily.`},
	{Name: HostOnSpine, Severity: verify.Warning, Count: "ports", Summary: "a host is cabled to a switch above the leaves", Explain: `In a fat tree a host on a spine has paths down only. Engines that rank switches by
their distance from hosts take the spine for a leaf then: OpenSM's ftree gives up, and
its updn finds other roots. Aggregation nodes, which are part of their switch, are no
hosts.`},
	{Name: UnevenUplinks, Severity: verify.Warning, Count: "cables", Summary: "a leaf has fewer uplinks than others", Explain: `The switches have levels, but the cables between them follow no regular pattern, and
this switch has fewer cables upward than most of its level. Its hosts share less
bandwidth than others. In fat trees that are recognized as such missing-cable says it
more exactly.`},
	{Name: UnevenPlanes, Severity: verify.Warning, Count: "lanes", Summary: "a plane lacks a lane that its sister planes have", Explain: `Chips that share a system image GUID, have no cables between them and are cabled to the
same systems are the planes of one switch, as XDR has four. Every cable has a lane for each
plane. Here one plane has no lane to a system where most of its sisters have one, or a
system has fewer planes than those like it. Traffic of the adapters is spread over all
planes, so that the slowest plane sets their pace. Reseat the cable and look at the ports
of all planes in its cage. A lane that missing-cable reports is no finding of this rule.`},
	{Name: MissingAggregation, Severity: verify.Warning, Count: "switches", Summary: "a switch has no aggregation node where switches like it have one", Explain: `Switches have a channel adapter of their own, by which they take part in SHARP; it is
on their last port. At least four switches of the same vendor, device, number of ports and
kind of port 0, and three quarters of all, have one, and this one has none: SHARP trees
cannot use the switch, and reductions over it are done by hosts. SHARP may be off in its
configuration, or its firmware may have failed: reset the switch. An aggregation node that
is there and that tables do not lead to is unicast-unreachable.`},
	{Name: IsolatedNode, Severity: verify.Warning, Count: "nodes", Summary: "a node has no cable", Explain: `The node is listed and none of its ports has a link. Discovery lists such a node only
when it started there.`},
	{Name: ReplacedNode, Severity: verify.Note, Count: "cables", Summary: "a node has another GUID than in the expected topology", Explain: `A node with this description is in both, with different GUIDs, and nothing else has
either: a switch or an adapter was replaced. Its cables are compared as if it were the
same. Update the expected topology, and guid2lid files if you keep LIDs.`},
	{Name: ExtraNode, Severity: verify.Warning, Count: "cables", Summary: "a node is there that the expected topology does not have", Explain: `Its cables are no findings of their own; count says how many it has.`},
	{Name: DuplicateName, Severity: verify.Note, Count: "nodes", Summary: "several nodes have the same description", Explain: `Names in reports and in files by name are ambiguous then. Descriptions that adapters
have before their host sets one are listed too: the host may not be up. A node-name map
(--node-name-map) gives switches names of your own. For switches it is a warning.`},
	{Name: PortDown, Severity: verify.Note, Count: "ports", Summary: "a port has no link where others like it have one", Explain: `A capture does not tell ports that are down from unused ports. This port
has no link, and at least three quarters of the nodes like it (same level and kind, or
same device) have one on that port, to a host; or the other ports of the same adapter
have one. With an expected topology there are no such findings: missing-cable is exact.`},
}, rails.Rules)
