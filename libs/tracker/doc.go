package tracker
