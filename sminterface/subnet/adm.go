package subnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// DefaultSMKey is the key by which OpenSM trusts a request unless it has another
// (OSM_DEFAULT_SA_KEY): it shows the ports of a group to such requests only.
const DefaultSMKey uint64 = 1

// Manager is where the subnet manager is, as the local port knows it.
type Manager struct {
	LID          fabric.LID
	SL           fabric.SL
	SubnetPrefix uint64
}

// ErrNoManager says that no subnet manager has configured the local port.
var ErrNoManager = errors.New("the local port knows of no subnet manager")

// Manager asks the local port for its subnet manager. Errors: ErrNoManager,
// and those of Get.
func (c *Client) Manager(ctx context.Context) (Manager, error) {
	data, err := c.Get(ctx, Target{}, mad.AttrNodeInfo, 0)
	if err != nil {
		return Manager{}, fmt.Errorf("the local port: %w", err)
	}
	var node mad.NodeInfo
	node.Unmarshal(&data)
	port := node.LocalPort
	if node.Type == fabric.Switch {
		port = fabric.ManagementPort
	}
	if data, err = c.Get(ctx, Target{}, mad.AttrPortInfo, uint32(port)); err != nil {
		return Manager{}, fmt.Errorf("the local port: %w", err)
	}
	var info mad.PortInfo
	info.Unmarshal(&data)
	if info.MasterSMLID == 0 || info.LID == 0 {
		return Manager{}, ErrNoManager
	}
	m := Manager{LID: info.MasterSMLID, SL: info.MasterSMSL, SubnetPrefix: info.SubnetPrefix}
	if m.SubnetPrefix == 0 {
		m.SubnetPrefix = mad.DefaultSubnetPrefix
	}
	return m, nil
}

// Adm sends a request to subnet administration. It fills in the header but for
// the method, the attribute and the modifier; the answer is whole, however many
// packets it had. Errors: a *mad.StatusError, and those of Get.
func (c *Client) Adm(ctx context.Context, to Manager, a *mad.Adm) (*mad.Adm, error) {
	request := *a
	request.BaseVersion, request.Class, request.ClassVersion = 1, mad.SubnAdm, mad.AdmVersion
	if len(request.Data) > mad.AdmDataSize {
		return nil, fmt.Errorf("a record of %d bytes, want at most %d", len(request.Data), mad.AdmDataSize)
	}
	x := &call{ctx: ctx}
	request.Append(x.buf[:0])
	x.packet = mad.Packet{LID: to.LID, SL: to.SL, QP: mad.QP1, QKey: mad.WellKnownQKey, Timeout: c.opt.Timeout, Retries: c.opt.Retries, Data: x.buf[:]}
	type result struct {
		data []byte
		err  error
	}
	ch := make(chan result, 1)
	x.done = func(answer []byte, err error) {
		ch <- result{append([]byte(nil), answer...), err}
	}
	c.start(x)
	var r result
	select {
	case r = <-ch:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	answer := new(mad.Adm)
	if err := answer.Unmarshal(r.data); err != nil {
		return nil, err
	}
	if answer.Status != 0 {
		return answer, &mad.StatusError{Class: mad.SubnAdm, Method: a.Method, Attribute: a.Attribute, Modifier: a.Modifier, Status: answer.Status}
	}
	return answer, nil
}

// Members lists the members of multicast groups: those that match the
// components of want that mask names, all with mask 0. Without an SM key
// OpenSM lists each group once, without its ports.
func (c *Client) Members(ctx context.Context, to Manager, want mad.MCMemberRecord, mask, smKey uint64) ([]mad.MCMemberRecord, error) {
	answer, err := c.Adm(ctx, to, &mad.Adm{
		Header: mad.Header{Method: mad.GetTable, Attribute: mad.AttrMCMemberRecord},
		SMKey:  smKey, ComponentMask: mask, Data: want.Append(nil),
	})
	if err != nil {
		if status := new(mad.StatusError); errors.As(err, &status) && status.Status == mad.NoRecords {
			return nil, nil
		}
		return nil, err
	}
	records, err := answer.Records(mad.MCMemberRecordSize)
	if err != nil {
		return nil, err
	}
	list := make([]mad.MCMemberRecord, len(records))
	for i, r := range records {
		if err := list[i].Unmarshal(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Membership is who takes part in which group, and how.
type Membership struct {
	MGID  netip.Addr
	MLID  fabric.LID // that the group is to have; 0 leaves it to the manager
	Port  fabric.GUID
	State mad.JoinState // 0 is FullMember
	// The group gets these when Join makes it. A zero PKey is 0xFFFF, the
	// default partition; a zero QKey is 0x0B1B, as OpenSM's own groups have.
	PKey uint16
	QKey uint32
	SL   fabric.SL
}

// MLIDError says that a group has another MLID than was asked for.
type MLIDError struct {
	MGID      netip.Addr
	Want, Got fabric.LID
}

func (e *MLIDError) Error() string {
	return fmt.Sprintf("group %s has MLID %#x, not %#x", e.MGID, uint16(e.Got), uint16(e.Want))
}

// NoGroupError says that a group is not there, and cannot be made by this
// request.
type NoGroupError struct {
	MGID netip.Addr
	Err  error
}

func (e *NoGroupError) Error() string {
	return fmt.Sprintf("no group %s, and only a full member can make it: %v", e.MGID, e.Err)
}

// Unwrap gives the answer of the subnet manager.
func (e *NoGroupError) Unwrap() error { return e.Err }

func (m *Membership) check() error {
	if !m.MGID.Is6() || m.MGID.As16()[0] != 0xff {
		return fmt.Errorf("MGID %s, want a multicast address such as ff12:a01d:fe80::1", m.MGID)
	}
	if m.MLID != 0 && (m.MLID < mft.MinMLID || m.MLID > mft.MaxMLID) {
		return fmt.Errorf("MLID %#x, want %#x to %#x", uint16(m.MLID), uint16(mft.MinMLID), uint16(mft.MaxMLID))
	}
	if m.Port == 0 {
		return errors.New("no port GUID")
	}
	return nil
}

// Join makes a port a member of a group (IBA 15.2.5.17): of one that is there,
// else of a new one, with the MLID that it is to have. The port need not be the
// local one; OpenSM takes note that another has joined for it (ProxyJoin), and
// lists the ports of such groups to trusted requests only. A port that is a
// member in another way becomes one in this way too.
//
// Errors: a *MLIDError where the group has another MLID, which leaves the port
// as it was; a *NoGroupError, for a member that can only send; those of Adm.
func (c *Client) Join(ctx context.Context, to Manager, m Membership) (mad.MCMemberRecord, error) {
	if err := m.check(); err != nil {
		return mad.MCMemberRecord{}, err
	}
	if m.State == 0 {
		m.State = mad.FullMember
	}
	record := mad.MCMemberRecord{MGID: m.MGID, PortGID: mad.PortGID(to.SubnetPrefix, m.Port), JoinState: m.State}
	create := false
	if m.MLID != 0 {
		// Asked first: a join that has to be undone would change the tables
		// of the switches twice.
		there, err := c.Members(ctx, to, record, mad.MCMemberMGID, 0)
		if err != nil {
			return mad.MCMemberRecord{}, err
		}
		for _, r := range there {
			if r.MLID != m.MLID {
				return mad.MCMemberRecord{}, &MLIDError{MGID: m.MGID, Want: m.MLID, Got: r.MLID}
			}
		}
		create = len(there) == 0 && m.State&mad.FullMember != 0
	}
	const join = mad.MCMemberMGID | mad.MCMemberPortGID | mad.MCMemberJoinState
	var (
		answer mad.MCMemberRecord
		err    error
	)
	if !create {
		answer, err = c.member(ctx, to, mad.Set, record, join)
		var status *mad.StatusError
		// No such group, most likely.
		create = errors.As(err, &status) && (status.Status == mad.InsufficientRequest || status.Status == mad.RequestInvalid)
	}
	if create {
		if m.State&mad.FullMember == 0 {
			return mad.MCMemberRecord{}, &NoGroupError{MGID: m.MGID, Err: err}
		}
		record.PKey, record.QKey, record.SL, record.MLID = m.PKey, m.QKey, m.SL, m.MLID
		if record.PKey == 0 {
			record.PKey = 0xffff
		}
		if record.QKey == 0 {
			record.QKey = 0x0b1b
		}
		mask := join | mad.MCMemberQKey | mad.MCMemberTClass | mad.MCMemberPKey | mad.MCMemberFlowLabel | mad.MCMemberSL
		if m.MLID != 0 {
			mask |= mad.MCMemberMLID
		}
		answer, err = c.member(ctx, to, mad.Set, record, mask)
	}
	if err != nil {
		return mad.MCMemberRecord{}, err
	}
	if m.MLID != 0 && answer.MLID != m.MLID {
		// Somebody else has made the group meanwhile, or the manager does not
		// do as it is asked.
		if _, err := c.member(ctx, to, mad.Delete, record, join); err != nil {
			return mad.MCMemberRecord{}, err
		}
		return mad.MCMemberRecord{}, &MLIDError{MGID: m.MGID, Want: m.MLID, Got: answer.MLID}
	}
	return answer, nil
}

// Leave ends the membership of a port in a group in the ways that m.State says.
// A MLID in m must be the group's. Errors: a *MLIDError, and those of Adm: OpenSM
// denies what does not fit with status RequestInvalid.
func (c *Client) Leave(ctx context.Context, to Manager, m Membership) (mad.MCMemberRecord, error) {
	if err := m.check(); err != nil {
		return mad.MCMemberRecord{}, err
	}
	if m.State == 0 {
		m.State = mad.FullMember
	}
	record := mad.MCMemberRecord{MGID: m.MGID, PortGID: mad.PortGID(to.SubnetPrefix, m.Port), JoinState: m.State}
	if m.MLID != 0 {
		there, err := c.Members(ctx, to, record, mad.MCMemberMGID, 0)
		if err != nil {
			return mad.MCMemberRecord{}, err
		}
		for _, r := range there {
			if r.MLID != m.MLID {
				return mad.MCMemberRecord{}, &MLIDError{MGID: m.MGID, Want: m.MLID, Got: r.MLID}
			}
		}
	}
	return c.member(ctx, to, mad.Delete, record, mad.MCMemberMGID|mad.MCMemberPortGID|mad.MCMemberJoinState)
}

// member sends a MCMemberRecord.
func (c *Client) member(ctx context.Context, to Manager, method mad.Method, record mad.MCMemberRecord, mask uint64) (mad.MCMemberRecord, error) {
	answer, err := c.Adm(ctx, to, &mad.Adm{
		Header:        mad.Header{Method: method, Attribute: mad.AttrMCMemberRecord},
		ComponentMask: mask, Data: record.Append(nil),
	})
	if err != nil {
		return mad.MCMemberRecord{}, err
	}
	var r mad.MCMemberRecord
	err = r.Unmarshal(answer.Data)
	return r, err
}
