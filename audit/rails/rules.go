package rails

import (
	"slices"

	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	Swapped = "rail-swapped"
	Mixed   = "rail-mixed"
	Missing = "rail-missing"
	Lost    = "rail-lost"
	Left    = "rail-left"
)

// Rules lists the rules about the cables of rails, the gravest first.
var Rules = []verify.Rule{
	{Name: Swapped, Severity: verify.Error, Count: "ports", Summary: "ports of a host are in each other's places", Explain: `Port k of each host is cabled to the leaf where the hosts beside it have theirs: they are one
rail. Here two ports of a host, or more, are each on the leaf of another one, and collective
operations inside a rail go through other traffic. With more than two ports the host may count its
adapters in another order. Where labels tell the adapters apart and their cables are right, only
their names are exchanged, which is a warning: what takes adapters by name, as NCCL_IB_HCA,
crosses rails. ibweave rails lists all rails and hosts.`},
	{Name: Mixed, Severity: verify.Error, Count: "ports", Summary: "rails are mixed: a port, or a leaf, is cabled to another rail", Explain: `A port of a host is on the leaf of another rail, and no other port of the host is in its place.
Or a leaf is cabled to the spines of another rail: three quarters of the leaves with the same spines
are of that one, and the leaves of its own have spines of theirs. A port that is on its rail, but on
a leaf of other hosts, is a warning.`},
	{Name: Missing, Severity: verify.Warning, Count: "hosts", Summary: "hosts have no port on a rail", Explain: `Most hosts beside them, or most of all, have a port on the rail. Where the other ports of a host
all have one number on their leaves, the port of that number is where the missing one should be: it
has no cable, or an adapter that describes itself by no host, as one without a driver.`},
}

// TableRules lists the rules about tables, the gravest first.
var TableRules = []verify.Rule{
	{Name: Lost, Severity: verify.Error, Count: "pairs", Summary: "the tables do not deliver packets within a rail"},
	{Name: Left, Severity: verify.Warning, Count: "routes", Summary: "routes within a rail pass switches of others"},
}

// allRules has both in the order of findings.
var allRules = slices.Concat(TableRules[:1], Rules, TableRules[1:])
