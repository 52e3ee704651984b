package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const cgroups = "/sys/fs/cgroup"

// makeCgroups creates the cgroup under which the kubelet keeps its pods, in every hierarchy.
func (n *Node) makeCgroups() error {
	if _, err := os.Stat(filepath.Join(cgroups, "memory", "tasks")); err != nil {
		return fmt.Errorf("this needs cgroups of version 1: %w", err)
	}
	for _, dir := range n.cgroupDirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		// Otherwise a cgroup counts as one process among those of the machine, however many run in it.
		if shares := filepath.Join(dir, "cpu.shares"); fileExists(shares) {
			if err := os.WriteFile(shares, []byte("8192"), 0o600); err != nil {
				return err
			}
		}
		// A cpuset starts empty and accepts no process then.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, name), value, 0o600)); err != nil {
				return err
			}
		}
	}
	return nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (n *Node) cgroupDirs() []string {
	roots, _ := filepath.Glob(cgroups + "/*/cgroup.procs") // the pattern is valid
	for i, r := range roots {
		roots[i] = filepath.Join(filepath.Dir(r), n.Name)
	}
	return roots
}

// removeCgroups removes them, the innermost first. Just killed processes may still be in them for a moment.
func (n *Node) removeCgroups() error {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var failed error
		for _, root := range n.cgroupDirs() {
			var dirs []string
			_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // a missing one is fine
				if err == nil && d.IsDir() {
					dirs = append(dirs, path)
				}
				return nil
			})
			for _, dir := range slices.Backward(dirs) {
				if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
					failed = err
				}
			}
		}
		if failed == nil || time.Now().After(end) {
			return failed
		}
	}
}
