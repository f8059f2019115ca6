# cmake -DDIR=schema/sql -DOUT=sql_migrations.c -P embed_sql.cmake
# Writes DIR/NNNN_name.sql as byte arrays: C11 promises string literals of 4095 characters only.
file(GLOB files "${DIR}/*.sql")
list(SORT files)
set(arrays "")
set(rows "")
set(count 0)
foreach(file ${files})
    get_filename_component(name "${file}" NAME_WE)
    if(NOT name MATCHES "^0*([1-9][0-9]*)_[a-z0-9_]+$")
        message(FATAL_ERROR "${file}: a migration is named NNNN_what_it_does.sql")
    endif()
    set(version ${CMAKE_MATCH_1})
    math(EXPR count "${count} + 1")
    if(NOT version EQUAL count)
        message(FATAL_ERROR "${file}: expected migration number ${count}; numbers have no gap and no twin")
    endif()
    file(READ "${file}" hex HEX)
    string(REPEAT "[0-9a-f]" 28 fourteen_bytes)
    string(REGEX REPLACE "(${fourteen_bytes})" "\\1\n" hex "${hex}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
    string(APPEND arrays "static const char sql_${version}[] = {\n${bytes}'\\0'};\n")
    string(APPEND rows "    {${version}, \"${name}\", sql_${version}},\n")
endforeach()
file(WRITE "${OUT}" "/* Generated from schema/sql by embed_sql.cmake. */
#include \"schema/sql/sql.h\"

${arrays}
const struct sql_migration sql_migrations[] = {
${rows}    {0, NULL, NULL},
};
const size_t sql_migrations_count = ${count};
")
