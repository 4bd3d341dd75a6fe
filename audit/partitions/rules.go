package partitions

import "github.com/ibweave/ibweave/verify"

// The names of the rules.
const (
	Missing            = "pkey-missing"
	Unexpected         = "pkey-unexpected"
	WrongMembership    = "pkey-membership"
	NoDefaultPartition = "no-default-partition"
	NoFullMember       = "no-full-member"
	IsolatedHost       = "isolated-host"
	UnknownMember      = "unknown-member"
	ConfReadOtherwise  = "partitions-conf"
)

// Rules lists the rules about partitions, the gravest first.
var Rules = []verify.Rule{
	{Name: Missing, Severity: verify.Error, Count: "ports", Summary: "ports lack a P_Key that partitions.conf gives them", Explain: `By partitions.conf the ports are in the partition, and their P_Key tables have no entry
of it: they cannot talk in it. OpenSM has not read the file since it was changed (it wants
a SIGHUP or a heavy sweep), it refused the file (its log says PARSE ERROR), or the table
was full. There is a finding for each partition.`},
	{Name: Unexpected, Severity: verify.Error, Count: "ports", Summary: "ports have a P_Key that partitions.conf does not give them", Explain: `The P_Key tables of the ports have an entry of a partition that the file does not put
them into, so that they can talk to ports that they are to be kept apart from. It is left
over from an earlier file or another subnet manager, or was written by somebody else.
There is a finding for each partition.`},
	{Name: WrongMembership, Severity: verify.Error, Count: "ports", Summary: "ports are full members where partitions.conf says limited, or the reverse", Explain: `A full member talks to all members of the partition, a limited one to full members alone.
Of several words for one port in a partition the last counts: in "0x1=full, ALL" port 0x1
is limited. There is a finding for each partition and direction.`},
	{Name: NoDefaultPartition, Severity: verify.Warning, Count: "ports", Summary: "ports are not in the default partition", Explain: `The P_Key table of the port has entries, and none of the default partition 0x7fff. The
port cannot talk to subnet administration: its host gets no path records and joins no
multicast group.`},
	{Name: NoFullMember, Severity: verify.Warning, Count: "ports", Summary: "all members of a partition are limited", Explain: `Limited members talk to full members alone (IBA 10.9.1.2), and the partition has none: no
two of its ports can talk in it. In partitions.conf a port without =full is limited unless
the partition has defmember=full. There is a finding for each partition.`},
	{Name: IsolatedHost, Severity: verify.Warning, Count: "hosts", Summary: "hosts have no other host to talk to", Explain: `In no partition of the host is another host that it can talk to: where it is a limited
member it wants a full one, where it is a full member anybody else. The port of the subnet
manager does not count in the default partition, in which it serves everybody. That is what
"Default=0x7fff : ALL, SELF=full;" makes of all hosts, as does a partitions.conf without a
line for the default partition: MPI, storage and IPoIB work between none of them.`},
	{Name: UnknownMember, Severity: verify.Warning, Count: "ports", Summary: "partitions.conf names ports that the fabric lacks", Explain: `No end port has the GUID: the host is down, its adapter was replaced, or the GUID is that of
the node (ibstat says "Node GUID") and not of the port. OpenSM passes over it in silence.
There is one finding, with the first of them.`},
	{Name: ConfReadOtherwise, Severity: verify.Warning, Count: "places", Summary: "OpenSM reads partitions.conf otherwise than it looks", Explain: `A word that OpenSM does not know is passed over or counts as limited, a later word for a
port replaces an earlier one, a line is cut at 4,094 bytes. There is a finding for each
place; docs/dev/partitions.md has the rules by which OpenSM reads the file.`},
}
