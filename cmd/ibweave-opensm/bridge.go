//go:build opensm

package main

/*
#cgo CFLAGS: -I/usr/include/infiniband -Wall -Wextra -Wno-unused-parameter -O2
#cgo LDFLAGS: -Wl,-wrap=pthread_create
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"cmp"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/cgo"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ibweave/ibweave/cmd/ibweave-opensm/plugin"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// main is never called in a c-shared library.
func main() {}

// instance is a plugin that OpenSM has loaded.
type instance struct {
	*plugin.Plugin
	mu     sync.Mutex
	routed []*plugin.Tables // by engine: tables that are not written yet
	ports  atomic.Int32     // number of ports in the last snapshot
}

func of(handle C.uintptr_t) *instance { return cgo.Handle(handle).Value().(*instance) }

//export ibweaveOpen
func ibweaveOpen(osm *C.struct_osm_opensm, options, logFile *C.char, engines *C.int) C.uintptr_t {
	host := plugin.Host{
		LogDir:   "/var/log",
		CacheDir: cmp.Or(os.Getenv("OSM_CACHE_DIR"), "/var/cache/opensm"),
		Log: func(level plugin.Level, line string) {
			text := C.CString(line)
			C.ibw_log(osm, C.int(level), text)
			C.free(unsafe.Pointer(text))
		},
		Sweep:   func() { C.ibw_sweep(osm) },
		Engines: engineTable(),
	}
	if logFile != nil {
		if dir := filepath.Dir(C.GoString(logFile)); filepath.IsAbs(dir) {
			host.LogDir = dir
		}
	}
	text := ""
	if options != nil {
		text = C.GoString(options)
	}
	compile.TuneGC() // for Go's runtime, a part of OpenSM's process
	p := &instance{Plugin: plugin.Open(text, host)}
	n := len(p.Engines())
	p.routed = make([]*plugin.Tables, n)
	*engines = C.int(n)
	return C.uintptr_t(cgo.NewHandle(p))
}

// ibweaveEngineName returns OpenSM's name of an engine; the caller frees it.
//
//export ibweaveEngineName
func ibweaveEngineName(handle C.uintptr_t, engine C.int) *C.char {
	return C.CString(of(handle).Engines()[engine])
}

//export ibweaveClose
func ibweaveClose(handle C.uintptr_t) {
	_ = of(handle).Close() // no log is left for the error
	cgo.Handle(handle).Delete()
}

func settings(s *C.struct_ibw_settings) plugin.Settings {
	return plugin.Settings{
		QoS: s.qos != 0, UcastCache: s.ucast_cache != 0, DumpsTables: s.dumps != 0,
		MaxDataVLs: int(dataVLs(uint8(s.max_op_vls))),
	}
}

// dataVLs returns how many VLs a code of VLCap or
// OperationalVLs stands for (IBA 14.2.5.6); 0 for none.
func dataVLs(code uint8) uint8 {
	if code < 6 {
		return [...]uint8{0, 1, 2, 4, 8, 15}[code]
	}
	return 0
}

// ibweaveSetup returns a negative number if OpenSM is not to use the
// engine. Else bit 0 is set if OpenSM should ask for multicast trees, bit 1 if
// OpenSM installs another engine's tables. ignored names options without effect.
//
//export ibweaveSetup
func ibweaveSetup(handle C.uintptr_t, engine C.int, s *C.struct_ibw_settings, ignored *C.char) C.int {
	p := of(handle)
	if p.Setup(int(engine), settings(s), C.GoString(ignored)) != nil {
		return -1
	}
	return C.int(bit(p.HandlesMulticast()) | bit(p.InShadow())<<1)
}

// takeSnapshot takes a snapshot of the subnet, while OpenSM holds its lock.
func (p *instance) takeSnapshot(osm *C.struct_osm_opensm) *plugin.Snapshot {
	start := time.Now()
	var head C.struct_ibw_snapshot
	var nodes []C.struct_ibw_node
	var ports []C.struct_ibw_port
	room := int(p.ports.Load())
	if room == 0 { // a guess, since counting takes long
		room = 64*int(C.ibw_num_switches(osm)) + 3*int(C.ibw_num_nodes(osm))
	}
	for ; ; room = int(head.num_ports) {
		nodes = make([]C.struct_ibw_node, C.ibw_num_nodes(osm)+1)
		ports = make([]C.struct_ibw_port, room+1)
		places := make([]C.struct_ibw_place, 1<<bits.Len(uint(2*len(nodes))))
		if C.ibw_snapshot_take(osm, &head, &nodes[0], C.int32_t(len(nodes)), &ports[0], C.int32_t(len(ports)), &places[0], C.size_t(len(places))) == 0 {
			break
		}
	}
	p.ports.Store(int32(head.num_ports))
	nodes, ports = nodes[:head.num_nodes], ports[:head.num_ports]
	t := &plugin.Snapshot{
		Settings: settings(&head.settings),
		Nodes:    make([]plugin.Node, len(nodes)),
		Ports:    make([]plugin.Port, len(ports)),
		MaxLID:   fabric.LID(head.max_lid),
	}
	// All descriptions are parts of one string.
	var all strings.Builder
	ends := make([]int, len(nodes))
	for i := range nodes {
		d := (*[len(nodes[0].description)]byte)(unsafe.Pointer(&nodes[i].description))
		all.Write(d[:bytes.IndexByte(d[:], 0)])
		ends[i] = all.Len()
	}
	from := 0
	for i := range nodes {
		n := &nodes[i]
		t.Nodes[i] = plugin.Node{
			GUID: fabric.GUID(n.guid), SystemGUID: fabric.GUID(n.system_guid), Type: uint8(n._type), NumPorts: uint8(n.num_ports),
			EnhancedPort0: n.enhanced_port0 != 0, First: int32(n.first), LinearCap: uint16(n.linear_cap),
			VendorID: uint32(n.vendor_id), DeviceID: uint16(n.device_id), Description: all.String()[from:ends[i]],
		}
		from = ends[i]
	}
	for i := range ports {
		p := &ports[i]
		t.Ports[i] = plugin.Port{
			GUID: fabric.GUID(p.guid), LID: fabric.LID(p.lid), LMC: uint8(p.lmc), Peer: int32(p.peer), Num: uint8(p.num),
			VLs: dataVLs(uint8(p.vl_cap)), OpVLs: dataVLs(uint8(p.op_vls)), Link: link(p), Sick: p.sick != 0,
		}
	}
	t.Took = time.Since(start)
	return t
}

// link returns the width and speed of an active port, Mellanox' own FDR10 included.
func link(p *C.struct_ibw_port) fabric.Link {
	info := mad.PortInfo{LinkWidthActive: uint8(p.width), LinkSpeedActive: uint8(p.speed), LinkSpeedExtActive: uint8(p.speed_ext)}
	l := info.Link(true)
	if l.Speed == fabric.QDR && p.fdr10 != 0 {
		l.Speed = fabric.FDR10
	}
	return l
}

// takeFound copies into s the LFTs that OpenSM read from switches.
func takeFound(osm *C.struct_osm_opensm, s *plugin.Snapshot) {
	s.Found = make([][]fabric.PortNum, len(s.Nodes))
	for i := range s.Nodes {
		if fabric.NodeType(s.Nodes[i].Type) != fabric.Switch {
			continue
		}
		row := make([]fabric.PortNum, int(s.MaxLID)+1)
		if n := C.ibw_found_lft(osm, C.uint64_t(s.Nodes[i].GUID), (*C.uint8_t)(unsafe.Pointer(&row[0])), C.uint16_t(s.MaxLID)); n > 0 {
			s.Found[i] = row[:n]
		}
	}
}

// ibweaveRoute computes the tables of an engine and writes the lid matrix. It
// returns 0, or a negative number if OpenSM is to take its next engine. reroute
// is not 0 outside of sweeps; found is not 0 if LFTs of some switches were read.
//
//export ibweaveRoute
func ibweaveRoute(handle C.uintptr_t, osm *C.struct_osm_opensm, engine, reroute, found C.int, wants *C.struct_ibw_wants) C.int {
	start := time.Now()
	p := of(handle)
	var s *plugin.Snapshot
	err := p.Guard(p.Engines()[engine], func() error {
		s = p.takeSnapshot(osm)
		s.Reroute = reroute != 0
		if found != 0 {
			taken := time.Now()
			takeFound(osm, s)
			start = start.Add(time.Since(taken)) // reading tables is no part of routing
		}
		return nil
	})
	if err != nil {
		return -1
	}
	t, err := p.Route(int(engine), s)
	if err != nil {
		return -1
	}
	if p.InShadow() {
		t.Timing.Computing = time.Since(start)
		_ = p.Guard(t.Engine, func() error { p.Written(t); return nil })
		return -1
	}
	if err := p.Guard(t.Engine, func() error { return writeHops(osm, t) }); err != nil {
		return -1
	}
	wants.sl2vl = bit(t.NeedsQoS())
	wants.vlarb = bit(p.ArbitratesVLs(t))
	wants.path_sl = bit(t.HasPathSLs())
	t.Timing.Computing = time.Since(start)
	p.mu.Lock()
	p.routed[engine] = t
	p.mu.Unlock()
	return 0
}

func bit(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

//export ibweaveSubnetUp
func ibweaveSubnetUp(handle C.uintptr_t) {
	p := of(handle)
	_ = p.Guard("", func() error { p.SubnetUp(); return nil })
}

func guids(t *plugin.Tables) *C.uint64_t {
	return (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(t.GUIDs)))
}

// writeHops writes the lid matrix if anything reads it. It first checks that OpenSM
// has room for all that is written later, so that nothing is ever half written.
func writeHops(osm *C.struct_osm_opensm, t *plugin.Tables) error {
	n := C.int32_t(len(t.GUIDs))
	if C.ibw_check_switches(osm, guids(t), n, C.uint16_t(t.Fabric.MaxLID())) != 0 {
		return plugin.ErrSwitches
	}
	if !t.WantsLIDMatrix() {
		return nil
	}
	lids := t.SwitchLIDs()
	list := (*C.uint16_t)(unsafe.Pointer(unsafe.SliceData(lids)))
	var buf []uint8
	for s := range t.GUIDs {
		width := int(t.Fabric.Node(fabric.NodeID(s)).NumPorts) + 1
		buf = slices.Grow(buf[:0], width*len(lids))[:width*len(lids)]
		for to := range lids {
			t.HopRow(fabric.NodeID(s), fabric.NodeID(to), buf[to*width:(to+1)*width])
		}
		if C.ibw_set_hop_rows(osm, C.uint64_t(t.GUIDs[s]), n, list, (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(buf))), C.int32_t(width)) != 0 {
			return plugin.ErrSwitches
		}
	}
	return nil
}

// ibweaveWrite gives OpenSM the LFTs of the last ibweaveRoute. It returns a positive
// number if OpenSM is to sweep again at once, and a negative one on failure.
//
//export ibweaveWrite
func ibweaveWrite(handle C.uintptr_t, osm *C.struct_osm_opensm, engine C.int) C.int {
	start := time.Now()
	p := of(handle)
	p.mu.Lock()
	t := p.routed[engine]
	p.routed[engine] = nil
	p.mu.Unlock()
	if t == nil {
		return -1
	}
	err := p.Guard(t.Engine, func() error {
		first := t.LFT(0)
		rows, apart := (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(first))), C.int64_t(cap(first))
		if C.ibw_set_lfts(osm, guids(t), C.int32_t(len(t.GUIDs)), rows, apart, C.uint16_t(t.Fabric.MaxLID()), C.int(bit(t.WantsLIDMatrix()))) != 0 {
			return plugin.ErrSwitches
		}
		t.Timing.Writing = time.Since(start)
		p.Written(t)
		return nil
	})
	if err != nil {
		return -1
	}
	return C.int(bit(t.SweepAgain))
}

//export ibweaveSL2VL
func ibweaveSL2VL(handle C.uintptr_t, node C.uint64_t, in, out C.uint8_t, table *C.uint8_t) (ok C.int) {
	p := of(handle)
	_ = p.Guard("", func() error {
		m, has := p.Current().SL2VL(fabric.GUID(node), fabric.PortNum(in), fabric.PortNum(out))
		if has {
			copy(unsafe.Slice((*uint8)(table), len(m)), m[:])
			ok = 1
		}
		return nil
	})
	return ok
}

//export ibweaveVLArb
func ibweaveVLArb(handle C.uintptr_t, block, length C.uint, entries *C.uint8_t) (ok C.int) {
	p := of(handle)
	_ = p.Guard("", func() error {
		list := make([]plugin.Arbitration, length)
		if p.VLArb(p.Current(), int(block), list) {
			to := unsafe.Slice((*uint8)(entries), 2*len(list))
			for i, e := range list {
				to[2*i], to[2*i+1] = uint8(e.VL), e.Weight
			}
			ok = 1
		}
		return nil
	})
	return ok
}

//export ibweavePathSL
func ibweavePathSL(handle C.uintptr_t, hint C.uint8_t, from, to C.uint16_t) (sl C.uint8_t) {
	p := of(handle)
	sl = hint
	_ = p.Guard("", func() error {
		if v, ok := p.Current().PathSL(fabric.LID(from), fabric.LID(to)); ok {
			sl = C.uint8_t(v)
		}
		return nil
	})
	return sl
}

// boxes translates groups of C; those with the same MLID become one box.
func boxes(g *C.struct_ibw_groups) []plugin.Box {
	var list []plugin.Box
	members := unsafe.Slice(g.members, g.num_members)
	for _, at := range unsafe.Slice(g.groups, g.num_groups) {
		group := plugin.Group{SL: fabric.SL(at.sl), Members: make([]plugin.Member, at.num_members)}
		group.MGID = netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&at.mgid)))
		for i := range group.Members {
			m := &members[int(at.first)+i]
			group.Members[i] = plugin.Member{Port: fabric.GUID(m.port_guid), State: mad.JoinState(m.state)}
		}
		if n := len(list); n == 0 || list[n-1].MLID != fabric.LID(at.mlid) {
			list = append(list, plugin.Box{MLID: fabric.LID(at.mlid)})
		}
		box := &list[len(list)-1]
		box.Groups = append(box.Groups, group)
	}
	return list
}

// ibweaveMasks builds the masks of one MLID, whose groups g has, and gives them to OpenSM.
//
//export ibweaveMasks
func ibweaveMasks(handle C.uintptr_t, osm *C.struct_osm_opensm, mlid C.uint16_t, g *C.struct_ibw_groups) {
	p := of(handle)
	_ = p.Guard("", func() error {
		one := boxes(g)
		if len(one) == 0 {
			return nil
		}
		ports := p.Masks(one[0], func() []plugin.Box {
			var all C.struct_ibw_groups
			defer C.ibw_groups_free(&all)
			if C.ibw_groups_all(osm, &all) != 0 {
				return one
			}
			return boxes(&all)
		})
		if len(ports) == 0 {
			return nil
		}
		list := make([]C.struct_ibw_switch_port, len(ports))
		for i, at := range ports {
			list[i].guid, list[i].port = C.uint64_t(at.Switch), C.uint8_t(at.Port)
		}
		C.ibw_set_masks(osm, mlid, &list[0], C.int32_t(len(list)))
		return nil
	})
}
