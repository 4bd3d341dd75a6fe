package topology

import (
	"bytes"
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

// ufmText is a JSON string, or a number in the place of one.
type ufmText string

// UnmarshalJSON takes a string, a number or null.
func (t *ufmText) UnmarshalJSON(b []byte) error {
	var s string
	switch {
	case string(b) == "null":
	case len(b) > 0 && b[0] == '"':
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	default:
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return fmt.Errorf("%s: want a string", b)
		}
		s = n.String()
	}
	*t = ufmText(s)
	return nil
}

// ufmLink is a link of UFM.
type ufmLink struct {
	SourceGUID  ufmText `json:"source_guid"`
	SourcePort  ufmText `json:"source_port"`
	SourceName  ufmText `json:"source_port_name"`
	SourceLabel ufmText `json:"source_port_dname"`
	SourceDesc  ufmText `json:"source_port_node_description"`
	DestGUID    ufmText `json:"destination_guid"`
	DestPort    ufmText `json:"destination_port"`
	DestName    ufmText `json:"destination_port_name"`
	DestLabel   ufmText `json:"destination_port_dname"`
	DestDesc    ufmText `json:"destination_port_node_description"`
	Name        ufmText `json:"name"`
	Width       ufmText `json:"width"`
}

// ufmBegin is where the JSON of UFM begins in data, -1 for nowhere: [ at the begin of a line,
// and { behind it.
func ufmBegin(data []byte) int {
	for at := 0; at < len(data); {
		text, _ := cutLine(data[at:])
		l := Line{Text: text}
		if l.SkipBlanks(); l.Is('[') && isArray(data[at+l.At:]) {
			return at + l.At
		}
		at += len(text) + 1
	}
	return -1
}

// isArray says whether data begins with [ and then {, or ].
func isArray(data []byte) bool {
	rest := bytes.TrimLeft(data[1:], " \t\n")
	return len(rest) > 0 && (rest[0] == '{' || rest[0] == ']')
}

// readUFM reads the links of UFM. Around the JSON may be foreign lines: what curl prints, and
// a prompt behind the last bracket.
func (p *parser) readUFM() error {
	begin := ufmBegin(p.data)
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
		var link ufmLink
		err := json.Unmarshal(raw, &link)
		if err == nil {
			err = x.readUFM(&link)
		}
		if err == nil {
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

// lineOf is the line with the byte at an offset, from a line before it on.
func (p *parser) lineOf(from place, at int) place {
	for n := bytes.IndexByte(p.data[from.off:at], '\n'); n >= 0; n = bytes.IndexByte(p.data[from.off:at], '\n') {
		from.off += n + 1
		from.num++
	}
	return from
}

// passOverText passes over foreign lines.
func (p *parser) passOverText(from, to int) error {
	p.line = p.lineOf(place{num: 1}, from)
	for from < to {
		text, _ := cutLine(p.data[from:to])
		p.line.off = from
		l := Line{Text: text}
		if l.SkipBlanks(); !l.Done() && !l.Is('#') {
			if err := p.passOver(&l); err != nil {
				return err
			}
		}
		from += len(text) + 1
		p.line.num++
	}
	return p.settleNoise(false)
}

// readUFM reads a link.
func (x *listLine) readUFM(u *ufmLink) (err error) {
	if x.own, err = ufmEnd(u.SourceGUID, u.SourcePort, u.SourceLabel, u.SourceDesc); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if x.peer, err = ufmEnd(u.DestGUID, u.DestPort, u.DestLabel, u.DestDesc); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	link, _ := linkOf([]byte(strings.ToLower(strings.TrimPrefix(string(u.Width), "IB_"))))
	x.link.Width = link.Width
	return u.identify(&x.own, &x.peer)
}

// ufmEnd reads GUID and number of a port.
func ufmEnd(guid, port, label, desc ufmText) (e listPort, err error) {
	if e.guid, err = fabric.ParseGUID(string(guid)); err != nil {
		return e, err
	}
	if e.guid == 0 {
		return e, errors.New("GUID 0: want another")
	}
	n, err := strconv.ParseUint(string(port), 10, 8)
	if err != nil || n < 1 || n > uint64(fabric.MaxPortNum) {
		return e, fmt.Errorf("port %q: want 1 to %d", string(port), fabric.MaxPortNum)
	}
	e.num, e.label, e.name = fabric.PortNum(n), string(label), string(desc)
	return e, nil
}

// ufmPort reads "0002c90000000001_5", the name of a port.
func ufmPort(s string) (e listPort, ok bool) {
	guid, port, ok := strings.Cut(s, "_")
	if !ok {
		return e, false
	}
	e, err := ufmEnd(ufmText(guid), ufmText(port), "", "")
	return e, err == nil
}

// identify takes the GUIDs of ports for those of their systems, where the link has them.
func (u *ufmLink) identify(source, dest *listPort) error {
	first, second, named := strings.Cut(string(u.Name), ":")
	one, ok1 := ufmPort(first)
	other, ok2 := ufmPort(second)
	if named = named && ok1 && ok2; named {
		straight, swapped := one.num == source.num && other.num == dest.num, one.num == dest.num && other.num == source.num
		switch {
		case !straight && !swapped:
			return fmt.Errorf("name %q and ports %d and %d: want the same ports in both", string(u.Name), source.num, dest.num)
		case !straight || swapped && source.guid != dest.guid && (one.guid == dest.guid || other.guid == source.guid):
			one, other = other, one
		}
	}
	for _, end := range []struct {
		to   *listPort
		name ufmText
		of   listPort
	}{{source, u.SourceName, one}, {dest, u.DestName, other}} {
		port, ok := ufmPort(string(end.name))
		switch {
		case ok && port.num != end.to.num:
			return fmt.Errorf("name %q of port %d: want the same port in both", string(end.name), end.to.num)
		case ok:
			end.to.guid = port.guid
		case named:
			end.to.guid = end.of.guid
		}
	}
	return nil
}

// adapterPort begins what UFM calls a port of an adapter, such as HCA-2/1.
const adapterPort = "HCA-"

// inferUFM finds what UFM does not say outright. The description of a switch has the port
// behind a colon, "leaf 1:1/3/1", and the one of an adapter has not. UFM before 6.12 has no
// descriptions: there the ports of adapters have names like HCA-2/1. A GUID with several
// ports is a switch in any case, since the ports of adapters have each their own.
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
			e.label = "" // the number of the port, or that of an adapter in its host
		}
	}
}

// switchName is the description without the port of a switch behind it, and whether it has
// one.
func (e *listPort) switchName() (name string, ofSwitch bool) {
	for _, port := range []string{e.label, strconv.Itoa(int(e.num))} {
		if name, ok := strings.CutSuffix(e.name, ":"+port); ok && port != "" {
			return name, true
		}
	}
	return e.name, false
}
