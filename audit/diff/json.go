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
		b.WriteString("\n    \"switches\": [")
		end := ""
		for i := range r.LFTs.Switches {
			line, err := jsonLine(r.LFTs.Switches[i])
			if err != nil {
				return err
			}
			b.WriteString(end + "\n      ")
			b.Write(line)
			end = ","
		}
		if end != "" {
			b.WriteString("\n    ")
		}
		b.WriteByte(']')
		b.Write(tail)
	}
	return b.Flush()
}

// jsonLine is a switch as JSON on one line, with blanks everywhere but in the labels.
func jsonLine(s SwitchChange) ([]byte, error) {
	labels, err := json.Marshal(s.Labels)
	if err != nil {
		return nil, err
	}
	has := len(s.Labels) > 0
	s.Labels = nil
	line, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	if err := json.Indent(&lines, line, "", ""); err != nil {
		return nil, err
	}
	line = bytes.ReplaceAll(bytes.ReplaceAll(lines.Bytes(), []byte(",\n"), []byte(", ")), []byte("\n"), nil)
	if has {
		line = fmt.Appendf(line[:len(line)-1], `, "labels": %s}`, labels)
	}
	return line, nil
}
