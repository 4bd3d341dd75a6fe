package outdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/par"
)

// file is a file to write.
type file struct {
	name  string
	write func(io.Writer) error
}

// pendingPrefix begins the name of a directory in the making, which is in the same parent as
// the one it replaces. The name goes on with the machine's boot ID, a hyphen and a random
// number. The process that writes it holds a lock (flock).
const pendingPrefix = ".ibweave-"

// oldInfix is in the name that the replaced directory has for a moment where directories cannot
// be exchanged: the name of the directory in the making, then oldInfix, then its former name.
const oldInfix = ".old-"

// foreignAge is the age from which a directory in the making counts as abandoned if its lock
// cannot be trusted: it is from another machine or boot (network file systems may not share
// locks), or the system has no locks.
const foreignAge = 24 * time.Hour

// writeDirectory writes the files of list and their manifest as directory dir. All of it
// appears at once: it makes a complete directory in the same parent, syncs it and puts it in
// place by one rename (by two, the old one first, if the file system cannot exchange
// directories, as NFS). A crash leaves dir either as it was or complete, and perhaps a hidden
// directory, which the next call for the same parent removes.
//
// A dir that exists is replaced only if it is empty or has only files of its own manifest:
// files of others must not be deleted.
func writeDirectory(ctx context.Context, dir string, list []file, m Manifest) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	mode := fs.FileMode(0o755)
	replace, err := replaceable(dir, list)
	if err != nil {
		return err
	}
	if replace {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	removeAbandoned(parent)
	pending, lock, err := makePending(parent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(pending), lock.Close()) }() // the unfinished or the replaced directory
	if err := os.Chmod(pending, mode); err != nil {
		return err
	}
	sums := make([]string, len(list))
	if err := par.ForEach(ctx, writersAtOnce, len(list), func(i int) (err error) {
		sums[i], err = writeFile(ctx, filepath.Join(pending, list[i].name), list[i].write)
		return err
	}); err != nil {
		return err
	}
	m.Files = make(map[string]string, len(list))
	for i, f := range list {
		m.Files[f.name] = sums[i]
	}
	writeManifest := func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(m)
	}
	if _, err := writeFile(ctx, filepath.Join(pending, ManifestName), writeManifest); err != nil {
		return err
	}
	if err := files.SyncFolder(pending); err != nil {
		return err
	}
	if err := swap(pending, dir, replace); err != nil {
		return err
	}
	return files.SyncFolder(parent)
}

// writersAtOnce is how many files are written at the same time: each writer already uses
// several CPUs.
const writersAtOnce = 2

// replaceable returns true if dir exists. It returns an error if dir has files that no compile
// wrote.
func replaceable(dir string, list []file) (exists bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || len(entries) == 0 {
		return true, err
	}
	m, err := ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, fmt.Errorf("%s is not empty and has no %s, so it is not a compiled directory; write to another one", dir, ManifestName)
	}
	if err != nil {
		return true, err
	}
	ours := map[string]bool{ManifestName: true}
	for name := range m.Files {
		ours[name] = true
		ours[strings.TrimSuffix(name, ZstdSuffix)] = true // its name when unpacked for OpenSM
	}
	for _, f := range list {
		ours[f.name] = true
	}
	for _, e := range entries {
		if !ours[e.Name()] || e.IsDir() {
			return true, fmt.Errorf("%s has %s, which no compile wrote and which would be lost; move it, or write to another directory", dir, e.Name())
		}
	}
	return true, nil
}

// swap puts pending in the place of dir. The old dir, if any, is then at pending.
func swap(pending, dir string, replace bool) error {
	if !replace {
		return os.Rename(pending, dir)
	}
	err := exchange(pending, dir)
	if !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOSYS) {
		if err != nil {
			return &os.LinkError{Op: "exchange", Old: pending, New: dir, Err: err}
		}
		return nil
	}
	if lock, err := lockDirectory(dir); err == nil { // it fails if another process has the lock
		defer lock.Close()
	}
	old := pending + oldInfix + filepath.Base(dir)
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(pending, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.Rename(old, pending)
}

// writeFile writes one file, syncs it and returns its SHA-256. It stops when ctx ends.
func writeFile(ctx context.Context, name string, write func(io.Writer) error) (sum string, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if err := files.WriteSynced(f, func(to io.Writer) error { return write(&sumWriter{ctx, to, h}) }); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sumWriter writes to a file and to a hash.
type sumWriter struct {
	ctx context.Context
	to  io.Writer
	sum hash.Hash
}

func (w *sumWriter) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.sum.Write(b)
	return w.to.Write(b)
}

// makePending makes a directory in parent and locks it. Another process may see it before it is
// locked, take the lock and remove it; then another one is made.
func makePending(parent string) (dir string, lock *os.File, err error) {
	for {
		if dir, err = os.MkdirTemp(parent, pendingPrefix+boot()+"-*"); err != nil {
			return "", nil, err
		}
		lock, err = lockDirectory(dir)
		if err == nil {
			if _, err = os.Lstat(dir); err == nil {
				return dir, lock, nil
			}
			lock.Close()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, errors.Join(err, os.Remove(dir))
		}
	}
}

// boot returns an ID of the machine's current boot.
func boot() string {
	id, _ := files.ReadRegular("/proc/sys/kernel/random/boot_id", 64)
	return string(id[:min(8, len(id))])
}

// removeAbandoned removes directories in the making that no process works on. It ignores
// errors: what stays is left to the next call.
func removeAbandoned(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	ours := pendingPrefix + boot() + "-"
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.IsDir() || !strings.HasPrefix(e.Name(), pendingPrefix) {
			continue
		}
		if (!hasLocks || !strings.HasPrefix(e.Name(), ours)) && time.Since(info.ModTime()) < foreignAge {
			continue
		}
		if _, name, is := strings.Cut(e.Name(), oldInfix); is { // keep the only complete one
			if _, err := os.Stat(filepath.Join(parent, name)); err != nil {
				continue
			}
		}
		dir := filepath.Join(parent, e.Name())
		if lock, err := lockDirectory(dir); err == nil {
			_ = os.RemoveAll(dir)
			lock.Close()
		}
	}
}
