package multipath

import "github.com/ibweave/ibweave/verify"

// The names of the rules.
const (
	DeadEnd              = "adaptive-dead-end"
	Loop                 = "adaptive-loop"
	CreditLoop           = "adaptive-credit-loop"
	Escape               = "adaptive-escape"
	ManagementLoop       = "management-adaptive-loop"
	ManagementDeadEnd    = "management-adaptive-dead-end"
	ManagementCreditLoop = "management-adaptive-credit-loop"
	ManagementEscape     = "management-adaptive-escape"
)

// Rules lists the rules of this package, the gravest first.
var Rules = []verify.Rule{
	{Name: DeadEnd, Severity: verify.Error, Count: "pairs", Summary: "a choice of ports leads to where packets for a LID are lost", Explain: `Adaptive switches choose a port for each packet or flow. Some sequence of choices leads
packets for the LID to a switch that has no entry for it, or to a port that does not
lead on: one without a cable, port 0, a CA with another LID, or one whose SL-to-VL table
drops the SL. Packets that take other choices may arrive, so that the loss depends on
the load. There is one finding for each LID. Its count is the number of source ports, and
its witness the way of one of them with the choices, up to the switch that loses the
packet. Pairs that no cables join are in partitioned instead.`},
	{Name: Loop, Severity: verify.Error, Count: "pairs", Summary: "a sequence of choices sends packets for a LID in a loop", Explain: `Packets for the LID can come to a switch again that they have left, with the same table
to follow, and nothing bounds how often. The witness is the cycle with its choices. There is
one finding for each LID; its count is the number of source ports whose packets can
come into a cycle.`},
	{Name: CreditLoop, Severity: verify.Error, Count: "channels", Summary: "channels of adaptive packets can wait for each other in a cycle, and static ports are no escape", Explain: `A packet that holds the buffer of a channel waits for the ports that it may choose. All
choices together close a cycle of waits, and so do the static ports alone that packets
come to by any choice: adaptive and static packets share the queue of a lane, so
that it does not help if static paths by themselves have no cycle. There is one finding for
each set of channels that all wait for each other, with a shortest cycle as the witness: each
line is a channel, a LID whose packets hold it while they wait for the next one, and
how the switch chooses it. Use groups that keep to the order of an engine without credit
loops (compile --adaptive), or more virtual lanes.`},
	{Name: Escape, Severity: verify.Warning, Count: "channels", Summary: "safe if a blocked packet is offered its static port again: otherwise channels can wait for each other", Explain: `All choices together close a cycle of waits, but from every channel that packets come to by
any choice, their static ports lead on without a cycle. So there is no deadlock if a switch
offers a blocked packet its static port again, and does not bind it to the port that it
has chosen. No public document says whether switches do, so that the rule
adaptive-credit-loop is undecided. The witness is a shortest cycle of all choices.`},
	{Name: ManagementLoop, Severity: verify.Error, Count: "pairs", Summary: "a sequence of choices sends management packets in a loop", Explain: `As adaptive-loop, for packets from port 0 of a switch to any LID, or from any port to the
LID of a switch.`},
	{Name: ManagementDeadEnd, Severity: verify.Warning, Count: "pairs", Summary: "a choice of ports leads to where management packets are lost", Explain: `As adaptive-dead-end, for packets from port 0 of a switch to any LID, or from any port to
the LID of a switch.`},
	{Name: ManagementCreditLoop, Severity: verify.Warning, Count: "channels", Summary: "management traffic closes a cycle of credits, and static ports are no escape", Explain: `As adaptive-credit-loop, for packets between CAs and those to and from port 0 of switches
together. Management packets on VL 15 need no credits; performance management and SA
queries take a data VL.`},
	{Name: ManagementEscape, Severity: verify.Warning, Count: "channels", Summary: "safe with management traffic if a blocked packet is offered its static port again", Explain: `As adaptive-escape, for packets between CAs and those to and from port 0 of switches
together: the rule management-adaptive-credit-loop is undecided.`},
}
