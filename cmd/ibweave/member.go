package main

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/mad"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// membership is the flags of join and leave.
type membership struct {
	reach
	cli.OutputForm
	mgid, port          string
	mlid                uint16 // 0 for any
	sendOnly, nonMember bool
	pkey                uint16
	qkey                uint32
	sl                  uint8
}

// parse makes a request of the flags.
func (m *membership) parse() (r subnet.Membership, err error) {
	if r.MGID, err = netip.ParseAddr(m.mgid); err != nil || !r.MGID.Is6() || r.MGID.Zone() != "" || r.MGID.As16()[0] != 0xff {
		return r, usagef("--mgid %q: want a multicast GID such as ff12:a01d:fe80::1", m.mgid)
	}
	r.MLID = fabric.LID(m.mlid)
	if r.Port, err = fabric.ParseGUID(m.port); err != nil || r.Port == 0 {
		return r, usagef("--port-guid %q: want the GUID of a port, 1 to 16 hexadecimal digits", m.port)
	}
	switch {
	case m.sendOnly && m.nonMember:
		return r, usagef("--send-only and --non-member exclude each other")
	case m.sendOnly:
		r.State = mad.SendOnlyNonMember
	case m.nonMember:
		r.State = mad.NonMember
	default:
		r.State = mad.FullMember
	}
	r.PKey, r.QKey, r.SL = m.pkey, m.qkey, fabric.SL(m.sl)
	return r, nil
}

// memberReport is the answer of the subnet manager.
type memberReport struct {
	MGID      string      `json:"mgid"`
	MLID      fabric.LID  `json:"mlid,omitempty"` // OpenSM does not tell it to those who leave
	Port      fabric.GUID `json:"port_guid"`
	JoinState uint8       `json:"join_state"`
	SL        fabric.SL   `json:"sl"`
	PKey      uint16      `json:"pkey"`
	QKey      uint32      `json:"qkey"`
}

// memberCommand returns the command join or leave; they differ in what they send.
func (a *app) memberCommand(name string) *cobra.Command {
	done, short, send := "joined", "make a port a member of a multicast group", (*subnet.Client).Join
	if name == "leave" {
		done, short, send = "left", "end the membership of a port in a multicast group", (*subnet.Client).Leave
	}
	var m membership
	cmd := &cobra.Command{
		Use:   name + " --ibsim [NAME] | --umad DEVICE[:PORT] --mgid M --port-guid G",
		Short: short,
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.args(cmd, args); err != nil {
				return err
			}
			request, err := m.parse()
			if err != nil {
				return err
			}
			c, err := a.open(cmd.Context(), &m.reach)
			if err != nil {
				return err
			}
			// Its error no longer matters.
			defer func() { _ = c.Close() }()
			sm, err := c.Manager(cmd.Context())
			if err != nil {
				return err
			}
			record, err := send(c, cmd.Context(), sm, request)
			if err != nil {
				return a.refused(err)
			}
			document := memberReport{
				MGID: record.MGID.String(), MLID: record.MLID, Port: request.Port, JoinState: uint8(record.JoinState),
				SL: record.SL, PKey: record.PKey, QKey: record.QKey,
			}
			return m.Print(a.stdout, document, func(b *text.Sheet) {
				mlid := ""
				if record.MLID != 0 { // OpenSM does not tell it to those who leave
					mlid = fmt.Sprintf(", MLID %#x", uint16(record.MLID))
				}
				fmt.Fprintf(b, "%s %s %s%s, as %s\n", request.Port, done, record.MGID, mlid, request.State)
			})
		},
	}
	f := cmd.Flags()
	m.reach.flags(f)
	f.StringVar(&m.mgid, "mgid", "", "multicast `GID` of the group")
	mlidFlag(f, &m.mlid, "mlid", "`MLID` that the group must have, or gets when it is made")
	f.StringVar(&m.port, "port-guid", "", "`GUID` of the port")
	f.BoolVar(&m.sendOnly, "send-only", false, "as a send-only non-member")
	f.BoolVar(&m.nonMember, "non-member", false, "as a non-member, which gets what is sent but does not keep the group alive")
	m.OutputForm.Define(f, "output")
	if name == "join" {
		cli.DefaultNumberFlag(f, &m.pkey, "pkey", 0xffff, 0, math.MaxUint16, "`P_Key` of a group that is made")
		cli.DefaultNumberFlag(f, &m.qkey, "qkey", 0x0b1b, 0, math.MaxUint32, "`Q_Key` of a group that is made")
		cli.NumberFlag(f, &m.sl, "sl", 0, lft.NumSLs-1, "`SL` of a group that is made")
	}
	a.require(cmd, "mgid", "port-guid")
	return cmd
}
