package diff

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// JSON prints the document of a result, with two blanks a level. Switches of the
// forwarding tables have a line each, since there can be millions of entries.
func JSON(w io.Writer, r *Result) error {
	shown := *r
	if r.LFTs != nil {
		tables := *r.LFTs
		tables.Switches = []SwitchChange{}
		shown.LFTs = &tables
	}
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(&shown); err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	// No string has a raw line end, and no other list of that depth is called so.
	head, tail, found := bytes.Cut(doc.Bytes(), []byte("\n    \"switches\": []"))
	b.Write(head)
	if found {
		fmt.Fprint(b, "\n    \"switches\": [")
		var line []byte
		for i := range r.LFTs.Switches {
			var err error
			if line, err = r.LFTs.Switches[i].append(line[:0]); err != nil {
				return err
			}
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(b, "\n      ")
			b.Write(line)
		}
		if len(r.LFTs.Switches) > 0 {
			fmt.Fprint(b, "\n    ")
		}
		b.WriteByte(']')
		b.Write(tail)
	}
	return b.Flush()
}

// append appends the switch as JSON on one line.
func (s *SwitchChange) append(b []byte) ([]byte, error) {
	name, err := json.Marshal(s.Name)
	if err != nil {
		return nil, err
	}
	b = fmt.Appendf(b, `{"switch": "%s", "name": %s, "changed": %d, "blocks": %d, "entries": `, s.Switch, name, s.Changed, s.Blocks)
	b = s.Entries.append(b)
	if len(s.Labels) > 0 {
		labels, err := json.Marshal(s.Labels)
		if err != nil {
			return nil, err
		}
		b = append(append(b, `, "labels": `...), labels...)
	}
	return append(b, '}'), nil
}

// MarshalJSON is a list of {"lid", "old", "new"}, and "old_lid" where that is
// another one.
func (e Entries) MarshalJSON() ([]byte, error) {
	return e.append(make([]byte, 0, 2+40*len(e))), nil
}

func (e Entries) append(b []byte) []byte {
	b = append(b, '[')
	for i := range e {
		x := &e[i]
		if i > 0 {
			b = append(b, ", "...)
		}
		b = fmt.Appendf(b, `{"lid": %d`, x.LID)
		if x.OldLID != x.LID {
			b = fmt.Appendf(b, `, "old_lid": %d`, x.OldLID)
		}
		b = fmt.Appendf(b, `, "old": %d, "new": %d}`, x.Old, x.New)
	}
	return append(b, ']')
}
