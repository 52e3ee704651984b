"""Writes the Parquet files of the test by pyarrow: python parquet.py <folder>. Row i of each holds what parquet_test.go expects."""
import sys
from decimal import Decimal
import pyarrow as pa, pyarrow.parquet as pq

N = 300
null = lambda i, v: None if i % 7 == 3 else v
table = pa.table({
    "whole": pa.array([null(i, i * 3 - 50) for i in range(N)], pa.int64()),
    "small": pa.array([i % 5 for i in range(N)], pa.int32()),
    "unsigned": pa.array([2**32 - 1 - i for i in range(N)], pa.uint32()),
    "float": pa.array([null(i, i / 4) for i in range(N)], pa.float32()),
    "double": pa.array([i / 3 for i in range(N)], pa.float64()),
    "flag": pa.array([i % 3 == 0 for i in range(N)], pa.bool_()),
    "at": pa.array([1_700_000_000_250 + i * 1000 for i in range(N)], pa.timestamp("ms")),
    "day": pa.array([19_000 + i for i in range(N)], pa.date32()),
    "user": pa.array([null(i, f"user {i % 11} ü") for i in range(N)], pa.string()),
    "emb": pa.array([null(i, [i / 2, -i, 0.25]) for i in range(N)], pa.list_(pa.float32())),
    "pair": pa.array([{"a": i, "b": i} for i in range(N)], pa.struct([("a", pa.int32()), ("b", pa.int32())])),
    "price": pa.array([Decimal(i) for i in range(N)], pa.decimal128(20, 2)),
})
out = sys.argv[1] + "/"
pq.write_table(table, out + "plain-v1.parquet", compression="none", use_dictionary=False, data_page_version="1.0")
pq.write_table(table, out + "snappy-dict-v1.parquet", compression="snappy", row_group_size=90, data_page_size=200)
pq.write_table(table, out + "zstd-dict-v2.parquet", compression="zstd", data_page_version="2.0", row_group_size=128, data_page_size=64)
pq.write_table(table, out + "gzip-v2.parquet", compression="gzip", use_dictionary=False, data_page_version="2.0")
pq.write_table(table, out + "split.parquet", use_dictionary=False, column_encoding={"float": "BYTE_STREAM_SPLIT", "double": "BYTE_STREAM_SPLIT"})
pq.write_table(table.select(["whole"]), out + "delta.parquet", use_dictionary=False, column_encoding={"whole": "DELTA_BINARY_PACKED"})
pq.write_table(table.select(["whole"]), out + "brotli.parquet", compression="brotli")
