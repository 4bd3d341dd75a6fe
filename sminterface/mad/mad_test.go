package mad

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

func TestNodeDescription(t *testing.T) {
	for text, want := range map[string]string{"": "", "a b": "a b", strings.Repeat("x", 64): strings.Repeat("x", 64), "a\x00b": "a"} {
		var b Data
		copy(b[:], text)
		var d NodeDescription
		if d.Unmarshal(&b); string(d) != want {
			t.Errorf("%q became %q", text, d)
		}
	}
}

// Where the fields are: bytes of a PortInfo, SwitchInfo and NodeInfo, made by
// hand from the tables of IBA 14.2.5.
func TestLayout(t *testing.T) {
	var b Data
	copy(b[16:], []byte{0x12, 0x34, 0x00, 0x03}) // LID, SM LID
	copy(b[20:], []byte{0x40, 0x00, 0x40, 0x02}) // bit 30, 14, 1
	b[28] = 7
	b[31] = 2    // 4x
	b[32] = 0x74 // SDR DDR QDR; Active
	b[33] = 0x52 // LinkUp; Polling
	b[34] = 0x85 // protect 2; LMC 5
	b[35] = 0x47 // QDR active
	b[36] = 0x5a // MTU 4096; SL 10
	b[37] = 0x40 // 8 VLs
	b[43] = 0x4a // 8 VLs; enforcement in, filter in
	b[62], b[63] = 0x87, 0x0f
	var p PortInfo
	p.Unmarshal(&b)
	want := PortInfo{LID: 0x1234, MasterSMLID: 3, CapabilityMask: IsMulticastFDBTop | IsExtendedSpeeds | 1<<1, LinkWidthActive: 2,
		PhysicalState: PhysicalLinkUp, LMC: 5, LinkSpeedActive: 4, MasterSMSL: 10, LinkSpeedExtActive: 8}
	short.Equal(t, p, want)
	for _, c := range []struct {
		extended bool
		width    uint8
		speed    uint8
		ext      uint8
		want     string
	}{
		{true, 2, 4, 8, "4xNDR"}, {true, 2, 4, 4, "4xHDR"}, {true, 16, 4, 2, "2xEDR"}, {true, 8, 4, 1, "12xFDR"}, {true, 4, 4, 0, "8xQDR"},
		{false, 2, 4, 8, "4xQDR"}, {false, 1, 2, 0, "1xDDR"}, {false, 1, 1, 0, "1xSDR"}, {true, 0, 0, 0, ""}, {true, 3, 3, 3, ""},
	} {
		p := PortInfo{LinkWidthActive: c.width, LinkSpeedActive: c.speed, LinkSpeedExtActive: c.ext}
		short.Equal(t, p.Link(c.extended).String(), c.want, c)
	}
	b = Data{2, 1, 2, 36}
	binary.BigEndian.PutUint64(b[12:], 0x0002c90300a1b2c3)
	copy(b[30:], []byte{0xd2, 0xf0})
	copy(b[36:], []byte{5, 0x00, 0x02, 0xc9})
	var n NodeInfo
	n.Unmarshal(&b)
	short.Equal(t, n, (NodeInfo{Type: fabric.Switch, NumPorts: 36, GUID: 0x2c90300a1b2c3, DeviceID: 0xd2f0, LocalPort: 5, VendorID: 0x2c9}))
	b = Data{0xc0, 0, 0, 0, 0x3f, 0xff, 0, 32, 255, 1, 2, 0x8e, 0, 1, 0, 8, 0x88, 0, 0xc0, 0x1f}
	var s SwitchInfo
	s.Unmarshal(&b)
	short.Equal(t, s, (SwitchInfo{MulticastFDBCap: 0x3fff, LinearFDBTop: 32, EnhancedPort0: true, MulticastFDBTop: 0xc01f}))
	b = Data{0x01, 0x2f, 7: 0xe4}
	var m SLtoVL
	if m.Unmarshal(&b); m != (SLtoVL{1: 1, 2: 2, 3: 15, 14: 14, 15: 4}) {
		t.Errorf("%v", m)
	}
	var l LinearForwardingTable
	if l.Unmarshal(&b); l != (LinearForwardingTable{1, 0x2f, 7: 0xe4}) {
		t.Errorf("%v", l)
	}
	var masks MulticastForwardingTable
	if masks.Unmarshal(&b); masks != (MulticastForwardingTable{0: 0x12f, 3: 0xe4}) {
		t.Errorf("%x", masks)
	}
	if HasFDR10(&b) || !HasFDR10(&Data{15: 1}) {
		t.Error("FDR10")
	}
	for _, c := range []struct{ got, want uint32 }{
		{SLtoVLModifier(3, 7), 0x307}, {MulticastModifier(511, 15), 0xf00001ff}, {MulticastModifier(1, 2), 0x20000001},
	} {
		short.Equal(t, c.got, c.want, "modifier")
	}
}

// Where the fields of a MCMemberRecord are, by hand from the table of IBA
// 15.2.5.17.
func TestMCMemberRecord(t *testing.T) {
	m := MCMemberRecord{MGID: netip.MustParseAddr("ff12:a01d:fe80::1"), PortGID: PortGID(DefaultSubnetPrefix, 0x100001), QKey: 0x0b1b, MLID: 0xc010,
		PKey: 0xffff, SL: 3, JoinState: FullMember | SendOnlyNonMember}
	want := []byte("\xff\x12\xa0\x1d\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\xfe\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x01" +
		"\x00\x00\x0b\x1b" + "\xc0\x10" + "\x00" + "\x00" + "\xff\xff" + "\x00" + "\x00" + "\x30\x00\x00\x00" + "\x05" + "\x00\x00\x00")
	short.EqualList(t, m.Append(nil), want)
	// What OpenSM answers of MTU, traffic class, rate, lifetime, flow, hops, scope and
	// proxy joins is passed over.
	copy(want[38:], "\x84\x09\xff\xff\x87\x52\x3a\xbc\xde\x40\x25\x01")
	var back MCMemberRecord
	if err := back.Unmarshal(want); err != nil || back != m {
		t.Errorf("%+v, %v", back, err)
	}
	short.Equal(t, m.JoinState.String(), "full+send-only member", m.JoinState)
	if err := back.Unmarshal(want[:51]); !errors.Is(err, ErrShort) {
		t.Errorf("51 bytes: %v", err)
	}
}

func TestErrors(t *testing.T) {
	e := &StatusError{Class: SubnAdm, Method: Set, Attribute: AttrMCMemberRecord, Status: InsufficientRequest}
	short.Equal(t, e.Error(), "Set(MCMemberRecord, 0): status 0x0600, insufficient components")
	e = &StatusError{Class: SubnLID, Method: Get, Attribute: AttrNodeInfo, Modifier: 7, Status: 3<<2 | Busy}
	short.Equal(t, e.Error(), "Get(NodeInfo, 7): status 0x000d, method and attribute not supported, busy")
	short.Equal(t, Attribute(0x99).Name(SubnLID)+" "+Class(9).String()+" "+Method(0x77).String(), "attribute 0x0099 class 0x09 method 0x77")
	var s SMP
	var a Adm
	whole := make([]byte, Size)
	if err := s.Unmarshal(whole[:255]); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
	if err := s.Unmarshal(whole); err == nil {
		t.Error("a SMP of class 0")
	}
	if err := a.Unmarshal(whole); err == nil {
		t.Error("subnet administration of class 0")
	}
	if err := a.Unmarshal(whole[:AdmHeaderSize-1]); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
}

func TestRecords(t *testing.T) {
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(i)
	}
	for _, c := range []struct {
		length, offset, size, want int
		err                        error
	}{
		{0, 0, 52, 0, nil}, {56, 7, 52, 1, nil}, {52, 7, 52, 1, nil}, {112, 7, 52, 2, nil}, {115, 7, 52, 2, nil},
		{200, 7, 52, 0, ErrTruncated}, {120, 7, 52, 0, ErrTruncated}, {56, 6, 52, 0, nil}, {56, 0, 52, 0, nil},
	} {
		a := Adm{AttributeOffset: uint16(c.offset), Data: data[:c.length]}
		list, err := a.Records(c.size)
		if c.want == 0 && c.length > 0 {
			if err == nil || list != nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("%+v: %d records, %v", c, len(list), err)
			}
			continue
		}
		if err != nil || len(list) != c.want {
			t.Errorf("%+v: %d records, %v", c, len(list), err)
		}
		for i, r := range list {
			if len(r) != c.size || int(r[0]) != i*8*c.offset {
				t.Errorf("%+v: record %d is %x", c, i, r)
			}
		}
	}
}

func FuzzSMP(f *testing.F) {
	s := SMP{Header: Header{BaseVersion: 1, Class: SubnDirected, ClassVersion: 1, Method: GetResp, TransactionID: 1 << 40, Attribute: AttrNodeInfo, Modifier: 3},
		Status: 28, HopCount: 2, MKey: 5, InitialPath: [64]fabric.PortNum{0, 1, 2}}
	var b [Size]byte
	s.Marshal(&b)
	f.Add(b[:])
	s.Class = SubnLID
	s.Marshal(&b)
	f.Add(b[:])
	f.Add(b[:100])
	f.Fuzz(func(t *testing.T, data []byte) {
		var s SMP
		if err := s.Unmarshal(data); err != nil {
			if !reflect.DeepEqual(s, SMP{}) {
				t.Fatalf("%v, and yet %+v", err, s)
			}
			return
		}
		var b [Size]byte
		s.Marshal(&b)
		var again SMP
		if err := again.Unmarshal(b[:]); err != nil || again != s {
			t.Fatalf("%+v\nbecame %+v, %v", s, again, err)
		}
	})
}

func FuzzAdm(f *testing.F) {
	m := MCMemberRecord{MLID: 0xc000, JoinState: FullMember}
	p := PathRecord{DLID: 7, SLID: 9, NumPath: 3, SL: 2}
	for _, data := range [][]byte{m.Append(nil), p.Append(nil), nil} {
		a := Adm{Header: Header{Class: SubnAdm, Method: GetTableResp}, SMKey: 1, AttributeOffset: uint16(len(data)+7) / 8, ComponentMask: 3, Data: data}
		f.Add(a.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Adm
		if err := a.Unmarshal(data); err != nil {
			if !reflect.DeepEqual(a, Adm{}) {
				t.Fatalf("%v, and yet %+v", err, a)
			}
			return
		}
		var again Adm
		short.Check(t, again.Unmarshal(a.Append(nil)))
		again.Data = again.Data[:len(a.Data)] // filled up to a MAD
		if !reflect.DeepEqual(a, again) {
			t.Fatalf("%+v\nbecame %+v", a, again)
		}
		list, err := a.Records(MCMemberRecordSize)
		if err != nil && list != nil {
			t.Fatalf("%v, and yet %d records", err, len(list))
		}
		var m, m2 MCMemberRecord
		if m.Unmarshal(a.Data) == nil {
			if err := m2.Unmarshal(m.Append(nil)); err != nil || m2 != m {
				t.Fatalf("%+v\nbecame %+v, %v", m, m2, err)
			}
		}
		var p, p2 PathRecord
		if p.Unmarshal(a.Data) == nil {
			if err := p2.Unmarshal(p.Append(nil)); err != nil || p2 != p {
				t.Fatalf("%+v\nbecame %+v, %v", p, p2, err)
			}
		}
	})
}
