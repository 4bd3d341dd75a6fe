package subnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// Manager is the address of the subnet manager, as the local port knows it.
type Manager struct {
	LID          fabric.LID
	SL           fabric.SL
	SubnetPrefix uint64
}

// ErrNoManager means that no subnet manager has configured the local port.
var ErrNoManager = errors.New("the local port knows of no subnet manager")

// Manager asks the local port for its subnet manager. Errors: ErrNoManager,
// and those of Get.
func (c *Client) Manager(ctx context.Context) (Manager, error) {
	data, err := c.Get(ctx, Target{}, mad.AttrNodeInfo, 0)
	if err != nil {
		return Manager{}, fmt.Errorf("the local port: %w", err)
	}
	node := mad.Of[mad.NodeInfo](&data)
	port := node.LocalPort
	if node.Type == fabric.Switch {
		port = fabric.ManagementPort
	}
	if data, err = c.Get(ctx, Target{}, mad.AttrPortInfo, uint32(port)); err != nil {
		return Manager{}, fmt.Errorf("the local port: %w", err)
	}
	info := mad.Of[mad.PortInfo](&data)
	if info.MasterSMLID == 0 || info.LID == 0 {
		return Manager{}, ErrNoManager
	}
	return Manager{LID: info.MasterSMLID, SL: info.MasterSMSL, SubnetPrefix: cmp.Or(info.SubnetPrefix, mad.DefaultSubnetPrefix)}, nil
}

// Adm sends a request to subnet administration. It fills in the header except
// the method, the attribute and the modifier. The answer is whole, even if it
// had several packets. Errors: a *mad.StatusError, and those of Get.
func (c *Client) Adm(ctx context.Context, to Manager, a *mad.Adm) (*mad.Adm, error) {
	request := *a
	request.BaseVersion, request.Class, request.ClassVersion = 1, mad.SubnAdm, mad.AdmVersion
	if len(request.Data) > mad.AdmDataSize {
		return nil, fmt.Errorf("a record of %d bytes, want at most %d", len(request.Data), mad.AdmDataSize)
	}
	x := &call{ctx: ctx}
	request.Append(x.buf[:0])
	x.packet = mad.Packet{LID: to.LID, SL: to.SL, QP: mad.QP1, QKey: mad.WellKnownQKey, Timeout: c.opt.Timeout, Retries: c.opt.Retries, Data: x.buf[:]}
	data, err := c.roundTrip(ctx, x)
	if err != nil {
		return nil, err
	}
	answer := new(mad.Adm)
	if err := answer.Unmarshal(data); err != nil {
		return nil, err
	}
	if answer.Status != 0 {
		return answer, &mad.StatusError{Class: mad.SubnAdm, Method: a.Method, Attribute: a.Attribute, Modifier: a.Modifier, Status: answer.Status}
	}
	return answer, nil
}

// Members lists the members of multicast groups that match those components of
// want that mask selects; with mask 0 it lists all. Without an SM key OpenSM
// lists each group once, without its ports.
func (c *Client) Members(ctx context.Context, to Manager, want mad.MCMemberRecord, mask, smKey uint64) ([]mad.MCMemberRecord, error) {
	return askRecords[mad.MCMemberRecord](ctx, c, to, mad.MCMemberRecordSize, &mad.Adm{
		Header: mad.Header{Method: mad.GetTable, Attribute: mad.AttrMCMemberRecord},
		SMKey:  smKey, ComponentMask: mask, Data: want.Append(nil),
	})
}

// askRecords asks subnet administration for records of size bytes: all that
// match with GetTable, one with Get. If there are none, the list is empty.
func askRecords[T any, P interface {
	*T
	Unmarshal([]byte) error
}](ctx context.Context, c *Client, to Manager, size int, request *mad.Adm) ([]T, error) {
	answer, err := c.Adm(ctx, to, request)
	if status := new(mad.StatusError); errors.As(err, &status) && status.Status == mad.NoRecords {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records := [][]byte{answer.Data}
	if request.Method == mad.GetTable {
		if records, err = answer.Records(size); err != nil {
			return nil, err
		}
	}
	list := make([]T, len(records))
	for i, r := range records {
		if err := P(&list[i]).Unmarshal(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Membership states which port takes part in which group, and how. Callers
// ensure that MGID is a multicast GID, and that MLID and Port are valid.
type Membership struct {
	MGID  netip.Addr
	MLID  fabric.LID // of the group; 0 leaves it to the manager
	Port  fabric.GUID
	State mad.JoinState // 0 is FullMember
	// Join gives these to a group that it creates. A zero PKey is 0xFFFF, the
	// default partition; a zero QKey is 0x0B1B, as OpenSM's own groups have.
	PKey uint16
	QKey uint32
	SL   fabric.SL
}

// MLIDError means that a group has another MLID than was asked for.
type MLIDError struct {
	MGID      netip.Addr
	Want, Got fabric.LID
}

func (e *MLIDError) Error() string {
	return fmt.Sprintf("group %s has MLID %#x, not %#x", e.MGID, uint16(e.Got), uint16(e.Want))
}

// NoGroupError means that a group does not exist, and that this request cannot create it.
type NoGroupError struct {
	MGID netip.Addr
	Err  error
}

func (e *NoGroupError) Error() string {
	return fmt.Sprintf("no group %s, and only a full member can make it: %v", e.MGID, e.Err)
}

// Unwrap returns the answer of the subnet manager.
func (e *NoGroupError) Unwrap() error { return e.Err }

// Join makes a port a member of a group (IBA 15.2.5.17): of the existing one, or else of a
// new one with m.MLID. The port need not be the local one; then OpenSM notes that another
// port has joined for it (ProxyJoin), and lists the ports of such groups only for trusted
// requests. A port that is already a member with another state gets this one in addition.
//
// Errors: a *MLIDError if the group has another MLID; the port is then unchanged; a
// *NoGroupError if the group does not exist and the port is no full member; those of Adm.
func (c *Client) Join(ctx context.Context, to Manager, m Membership) (mad.MCMemberRecord, error) {
	// Ask for the MLID first: to join and leave again would
	// change the tables of the switches twice.
	record, groups, err := c.checkGroup(ctx, to, m)
	if err != nil {
		return mad.MCMemberRecord{}, err
	}
	full := record.JoinState&mad.FullMember != 0
	var answer mad.MCMemberRecord
	create := m.MLID != 0 && groups == 0 && full
	if !create {
		answer, err = c.member(ctx, to, mad.Set, record, join)
		if status, ok := errors.AsType[*mad.StatusError](err); ok && (status.Status == mad.InsufficientRequest || status.Status == mad.RequestInvalid) {
			// Most likely, there is no such group.
			if !full {
				return mad.MCMemberRecord{}, &NoGroupError{MGID: m.MGID, Err: err}
			}
			create = true
		}
	}
	if create {
		answer, err = c.create(ctx, to, record, m)
	}
	if err != nil {
		return mad.MCMemberRecord{}, err
	}
	if m.MLID != 0 && answer.MLID != m.MLID {
		// Another client has created the group meanwhile, or the manager ignores the MLID.
		if _, err := c.member(ctx, to, mad.Delete, record, join); err != nil {
			return mad.MCMemberRecord{}, err
		}
		return mad.MCMemberRecord{}, &MLIDError{MGID: m.MGID, Want: m.MLID, Got: answer.MLID}
	}
	return answer, nil
}

// join has the components of a record for joining and leaving.
const join = mad.MCMemberMGID | mad.MCMemberPortGID | mad.MCMemberJoinState

// checkGroup returns the record that requests a membership. If m has an MLID, it checks
// that an existing group has that MLID, and returns how many groups have this MGID.
func (c *Client) checkGroup(ctx context.Context, to Manager, m Membership) (record mad.MCMemberRecord, groups int, err error) {
	record = mad.MCMemberRecord{MGID: m.MGID, PortGID: mad.PortGID(to.SubnetPrefix, m.Port), JoinState: cmp.Or(m.State, mad.FullMember)}
	if m.MLID == 0 {
		return record, 0, nil
	}
	there, err := c.Members(ctx, to, record, mad.MCMemberMGID, 0)
	for _, r := range there {
		if r.MLID != m.MLID {
			return record, 0, &MLIDError{MGID: m.MGID, Want: m.MLID, Got: r.MLID}
		}
	}
	return record, len(there), err
}

// create creates a group with its first member.
func (c *Client) create(ctx context.Context, to Manager, record mad.MCMemberRecord, m Membership) (mad.MCMemberRecord, error) {
	record.PKey, record.QKey = cmp.Or(m.PKey, 0xffff), cmp.Or(m.QKey, 0x0b1b)
	record.SL, record.MLID = m.SL, m.MLID
	mask := join | mad.MCMemberQKey | mad.MCMemberTClass | mad.MCMemberPKey | mad.MCMemberFlowLabel | mad.MCMemberSL
	if m.MLID != 0 {
		mask |= mad.MCMemberMLID
	}
	return c.member(ctx, to, mad.Set, record, mask)
}

// Leave removes the states in m.State from a port's membership in a
// group. A MLID in m must be the group's. Errors: a *MLIDError, and those
// of Adm: OpenSM denies an invalid request with status RequestInvalid.
func (c *Client) Leave(ctx context.Context, to Manager, m Membership) (mad.MCMemberRecord, error) {
	record, _, err := c.checkGroup(ctx, to, m)
	if err != nil {
		return mad.MCMemberRecord{}, err
	}
	return c.member(ctx, to, mad.Delete, record, join)
}

// member sends a MCMemberRecord, and returns the one in the answer.
func (c *Client) member(ctx context.Context, to Manager, method mad.Method, record mad.MCMemberRecord, mask uint64) (r mad.MCMemberRecord, err error) {
	answer, err := c.Adm(ctx, to, &mad.Adm{
		Header:        mad.Header{Method: method, Attribute: mad.AttrMCMemberRecord},
		ComponentMask: mask, Data: record.Append(nil),
	})
	if err == nil {
		err = r.Unmarshal(answer.Data)
	}
	return r, err
}
