package diff

import (
	"bufio"
	"bytes"
	"encoding/json"
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
			line, err := json.Marshal(&r.LFTs.Switches[i])
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
