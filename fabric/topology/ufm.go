package topology

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// This file reads the list of links of NVIDIA UFM (GET /ufmRest/resources/links; UFM
// Enterprise REST API Guide, "Links REST API"): a JSON array with an object for each cable.
//
//	{"source_guid": "0002c90000000001", "source_port": "5", "source_port_dname": "1/3/1",
//	 "source_port_node_description": "leaf 1:1/3/1", "destination_guid": .., "width": "4x",
//	 "name": "0002c90000000001_5:0000000000000101_1", "severity": "Info"}
//
// source_guid may be the GUID of a system: of a host with several adapters, or of a director.
// The port is named by GUID and number in source_port_name, or in name, where the two ends
// may stand in either order.

// readUFM reads the links of UFM. Foreign lines may surround the JSON: what curl prints,
// and a prompt behind the last bracket. begin is the offset of the first bracket.
func (p *parser) readUFM(begin int) error {
	if err := p.passOverText(0, begin); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(p.data[begin:]))
	var links []json.RawMessage
	if err := d.Decode(&links); err != nil {
		at := len(p.data)
		var syntax *json.SyntaxError
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the text ends within the list: the file is cut short")
		} else if errors.As(err, &syntax) {
			at = begin + int(syntax.Offset) - 1
		}
		return p.refusal(p.lineOf(place{num: 1}, at), 0, "no list of links as UFM gives it for /ufmRest/resources/links: %w", err)
	}
	lines := make([]listLine, 0, len(links))
	p.line = place{num: 1}
	at := begin
	for _, raw := range links {
		at += bytes.Index(p.data[at:], raw)
		p.line = p.lineOf(p.line, at)
		x := listLine{at: p.line, linked: true}
		if err := x.readUFM(raw); err == nil {
			lines = append(lines, x)
		} else if err := p.mend(p.line, at-p.line.off, "link dropped", "%w", err); err != nil {
			return err
		}
		at += len(raw)
	}
	if err := p.passOverText(begin+int(d.InputOffset()), len(p.data)); err != nil || len(lines) == 0 {
		return err
	}
	inferUFM(lines)
	return p.listNodes(lines, true)
}

// lineOf returns the line that has the byte at offset at; from is that line or an earlier one.
func (p *parser) lineOf(from place, at int) place {
	for n := bytes.IndexByte(p.data[from.off:at], '\n'); n >= 0; n = bytes.IndexByte(p.data[from.off:at], '\n') {
		from.off += n + 1
		from.num++
	}
	return from
}

// passOverText passes over foreign lines between two offsets.
func (p *parser) passOverText(from, to int) error {
	at := place{from, p.lineOf(place{num: 1}, from).num - 1}
	if err := p.eachLineIn(at, to, p.passOver); err != nil {
		return err
	}
	return p.settleNoise(false)
}

// readUFM reads a link. Its values are strings; in some versions, ports are numbers.
func (x *listLine) readUFM(raw json.RawMessage) (err error) {
	var link map[string]any
	var bad error
	defer func() { err = cmp.Or(bad, err) }()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&link); err != nil {
		return errors.New("want an object of a link")
	}
	text := func(key string) string {
		switch link[key].(type) {
		case nil:
			return ""
		case bool, []any, map[string]any:
			bad = fmt.Errorf("%s: want a string", key)
		}
		return fmt.Sprint(link[key])
	}
	for _, end := range []struct {
		side string
		to   *listPort
	}{{"source", &x.own}, {"destination", &x.peer}} {
		e, err := ufmEnd(text(end.side+"_guid"), text(end.side+"_port"))
		if err != nil {
			return fmt.Errorf("%s: %w", end.side, err)
		}
		e.label, e.name = text(end.side+"_port_dname"), text(end.side+"_port_node_description")
		*end.to = e
	}
	width, _ := linkOf([]byte(strings.ToLower(strings.TrimPrefix(text("width"), "IB_"))))
	x.link.Width = width.Width
	return x.identify(text("name"), text("source_port_name"), text("destination_port_name"))
}

func ufmEnd(guid, port string) (e listPort, err error) {
	if e.guid, err = fabric.ParseGUID(guid); err != nil {
		return e, err
	}
	if e.guid == 0 {
		return e, errors.New("GUID 0: want another")
	}
	n, err := strconv.ParseUint(port, 10, 8)
	if err != nil || n < 1 || n > uint64(fabric.MaxPortNum) {
		return e, fmt.Errorf("port %q: want 1 to %d", port, fabric.MaxPortNum)
	}
	e.num = fabric.PortNum(n)
	return e, nil
}

// ufmPort reads "0002c90000000001_5", the name of a port.
func ufmPort(s string) (e listPort, ok bool) {
	guid, port, _ := strings.Cut(s, "_")
	e, err := ufmEnd(guid, port)
	return e, err == nil
}

// identify replaces GUIDs of systems by those of the ports themselves,
// if the link has them in its own name, or in the names of its ports.
func (x *listLine) identify(name, sourceName, destName string) error {
	source, dest := &x.own, &x.peer
	first, second, named := strings.Cut(name, ":")
	one, ok1 := ufmPort(first)
	other, ok2 := ufmPort(second)
	if named = named && ok1 && ok2; named {
		straight, swapped := one.num == source.num && other.num == dest.num, one.num == dest.num && other.num == source.num
		switch {
		case !straight && !swapped:
			return fmt.Errorf("name %q and ports %d and %d: want the same ports in both", name, source.num, dest.num)
		case !straight || swapped && source.guid != dest.guid && (one.guid == dest.guid || other.guid == source.guid):
			one, other = other, one
		}
	}
	for _, end := range []struct {
		to   *listPort
		name string
		of   listPort
	}{{source, sourceName, one}, {dest, destName, other}} {
		port, ok := ufmPort(end.name)
		switch {
		case ok && port.num != end.to.num:
			return fmt.Errorf("name %q of port %d: want the same port in both", end.name, end.to.num)
		case ok:
			end.to.guid = port.guid
		case named:
			end.to.guid = end.of.guid
		}
	}
	return nil
}

// adapterPort begins UFM's name of a port of an adapter, such as HCA-2/1.
const adapterPort = "HCA-"

// inferUFM finds what UFM does not state. The description of a switch has the port
// behind a colon, "leaf 1:1/3/1", that of an adapter has not. UFM before 6.12 has no
// descriptions: there, ports of adapters have names like HCA-2/1. Else a GUID
// with several ports is a switch, since each port of an adapter has its own.
func inferUFM(lines []listLine) {
	inferKinds(lines, func(e *listPort) fabric.NodeType {
		name, ofSwitch := e.switchName()
		switch {
		case strings.HasPrefix(e.label, adapterPort):
			return fabric.CA
		case ofSwitch || name == "":
			return fabric.Switch
		}
		return 0
	})
	for e := range ends(lines) {
		if e.kind == fabric.Switch {
			e.name, _ = e.switchName()
		}
		if strings.HasPrefix(e.label, adapterPort) || !strings.Contains(e.label, "/") || !IsLabel([]byte(e.label)) {
			e.label = "" // a number: of the port, or of an adapter in its host
		}
	}
}

// switchName returns the description without the port of a
// switch behind it; ofSwitch is true if it had one.
func (e *listPort) switchName() (name string, ofSwitch bool) {
	for _, port := range []string{e.label, strconv.Itoa(int(e.num))} {
		if name, ok := strings.CutSuffix(e.name, ":"+port); ok && port != "" {
			return name, true
		}
	}
	return e.name, false
}
